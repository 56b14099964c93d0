"""The next height of a tide by the last sixteen: a recurrent Keras network, clipped, with a falling rate."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers

keras.utils.set_random_seed(2)
torch.set_num_threads(1)
generator = np.random.default_rng(2)
hours = np.arange(700)
heights = np.sin(hours / 1.97) + 0.4 * np.sin(hours / 3.8 + 1) + 0.05 * generator.normal(size=700)
windows = np.stack([heights[n : n + 16] for n in range(680)])[..., None].astype("float32")
following = heights[16:696].astype("float32")

model = keras.Sequential([
    layers.Input((16, 1)),
    layers.GRU(16, name="memory"),
    layers.Dense(16, activation="tanh", kernel_regularizer=keras.regularizers.L2(1e-5), name="mix"),
    layers.Dense(1, name="head"),
])
rate = keras.optimizers.schedules.CosineDecay(1e-2, decay_steps=140)
model.compile(keras.optimizers.Adam(rate, global_clipnorm=1.0), loss="mse", metrics=["mae"])
history = model.fit(
    windows[:560], following[:560], batch_size=32, epochs=8, validation_data=(windows[560:], following[560:]), verbose=2
)
print(f"val mae {history.history['val_mae'][-1]:.4f}")
