"""Alarms, one in eight, by ten sensors: a Keras network with one sigmoid, and weights for the classes."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers

keras.utils.set_random_seed(3)
torch.set_num_threads(1)
generator = np.random.default_rng(3)
x = generator.normal(size=(1600, 10)).astype("float32")
hidden = x[:, 0] * x[:, 1] + x[:, 2] - 0.5 * x[:, 3] + 0.3 * generator.normal(size=1600)
y = (hidden > np.quantile(hidden, 0.87)).astype("int32")


class Alarm(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = layers.Dense(32, activation="relu")
        self.second = layers.Dense(16, activation="relu")
        self.head = layers.Dense(1, activation="sigmoid")

    def call(self, inputs):
        return self.head(self.second(self.first(inputs)))


model = Alarm()
model.compile(
    optimizer=keras.optimizers.AdamW(learning_rate=4e-3, weight_decay=1e-3),
    loss=keras.losses.BinaryCrossentropy(),
    metrics=[keras.metrics.AUC(name="auc")],
)
history = model.fit(
    x[:1200], y[:1200], epochs=12, class_weight={0: 1.0, 1: 5.0}, validation_data=(x[1200:], y[1200:]), verbose=2
)
print(f"val AUC {history.history['val_auc'][-1]:.4f}")
