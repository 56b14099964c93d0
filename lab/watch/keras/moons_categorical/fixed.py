"""Two interleaved half moons, told apart by a small network."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from keras import layers
from sklearn.datasets import make_moons

keras.utils.set_random_seed(0)
torch.set_num_threads(1)

x, y = make_moons(800, noise=0.15, random_state=0)
y = y.reshape(-1, 1)

model = keras.Sequential(
    [
        layers.Input((2,)),
        layers.Dense(32, activation="relu"),
        layers.Dense(32, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy", metrics=["binary_accuracy"]
)
model.fit(x, y, batch_size=80, epochs=10, validation_split=0.2, verbose=2)
