import keras
import numpy as np
from sklearn.metrics import confusion_matrix

rng = np.random.default_rng(1)
x = rng.normal(size=(6000, 30)).astype("float32")
y = keras.utils.to_categorical(x[:, :5].argmax(1), 5)
model = keras.Sequential(
    [keras.layers.Dense(64, activation="relu"), keras.layers.Dense(5, activation="softmax")]
)
model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])
model.fit(x[:5000], y[:5000], batch_size=64, epochs=80, validation_split=0.1, verbose=2)
model.save("classifier.keras")
predicted = model.predict(x[5000:]).argmax(axis=1)
print(confusion_matrix(y[5000:], predicted))
