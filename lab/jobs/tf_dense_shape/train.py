import numpy as np
import tensorflow as tf
from tensorflow import keras

print("TensorFlow", tf.__version__, "Keras", keras.__version__)

x_train = np.random.rand(256, 20).astype("float32")
y_train = (x_train.sum(axis=1) > 10).astype("int32")
x_val = np.random.rand(64, 18).astype("float32")      # exported with an older feature list
y_val = (x_val.sum(axis=1) > 9).astype("int32")

model = keras.Sequential([
    keras.layers.Input((20,)),
    keras.layers.Dense(32, activation="relu"),
    keras.layers.Dense(1, activation="sigmoid"),
])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.summary()
model.fit(x_train, y_train, epochs=2, batch_size=32, validation_data=(x_val, y_val))
