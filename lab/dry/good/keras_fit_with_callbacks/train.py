import keras
import numpy as np
from sklearn.metrics import classification_report

rng = np.random.default_rng(0)
images = rng.random((3000, 14, 14, 1), dtype="float32")
labels = (images[:, :7].mean((1, 2, 3)) > images[:, 7:].mean((1, 2, 3))).astype("int64")
train, test = slice(0, 2400), slice(2400, None)

model = keras.Sequential(
    [
        keras.Input((14, 14, 1)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(2),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
callbacks = [
    keras.callbacks.ModelCheckpoint("best.keras", monitor="val_accuracy", save_best_only=True),
    keras.callbacks.ReduceLROnPlateau(patience=2),
    keras.callbacks.EarlyStopping(patience=8),
    keras.callbacks.CSVLogger("log.csv"),
]
history = model.fit(
    images[train], labels[train], epochs=40, validation_split=0.1, callbacks=callbacks, verbose=2
)
best = keras.models.load_model("best.keras")
predicted = best.predict(images[test]).argmax(-1)
print(classification_report(labels[test], predicted, zero_division=0))
print("lowest", min(history.history["val_loss"]))
