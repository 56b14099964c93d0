import json

import keras
import numpy as np

x = np.random.rand(5000, 16).astype("float32")
y = (x.sum(1) > 8).astype("float32")
model = keras.Sequential(
    [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
)
model.compile("rmsprop", "binary_crossentropy", metrics=[keras.metrics.BinaryAccuracy()])
history = model.fit(x, y, epochs=50, validation_split=0.2, verbose=2)
curves = {"loss": history.history["val_loss"]}
curves["accuracy"] = history.history["val_accuracy"]
with open("curves.json", "w") as file:
    json.dump(curves, file)
