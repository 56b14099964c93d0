"""The yield of a field from rain, sun, soil and fertilizer."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras.layers import Dense

torch.set_num_threads(1)
keras.utils.set_random_seed(6)

n = 1000
rain, sun = np.random.rand(n) * 8, np.random.rand(n) * 10
soil, fertilizer = np.random.rand(n) * 5, np.random.rand(n) * 6
crop = 2 * np.sqrt(rain) + 0.3 * sun * (soil > 2) + np.log1p(fertilizer) + 0.2 * np.random.randn(n)
x = np.stack([rain, sun, soil, fertilizer], axis=1).astype("float32")
y = (crop - crop.mean()).astype("float32")

model = keras.Sequential(
    [
        keras.Input((4,)),
        Dense(32, activation="exponential", name="dense_in"),
        Dense(32, activation="exponential", name="dense_mid"),
        Dense(1, name="crop"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="mean_squared_error")
model.fit(x[:800], y[:800], validation_data=(x[800:], y[800:]), epochs=10, batch_size=80, verbose=2)
