"""Classifies leaves by their measurements in Keras; the labels are integers."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch
from keras import layers

torch.set_num_threads(1)
keras.utils.set_random_seed(9)
random = np.random.default_rng(9)
SPECIES = 5
centres = random.normal(size=(SPECIES, 8))
species = random.integers(SPECIES, size=1000)
leaves = centres[species] + 0.55 * random.normal(size=(1000, 8))
leaves = ((leaves - leaves.mean(0)) / leaves.std(0)).astype("float32")
order = random.permutation(1000)
leaves, species = leaves[order], species[order]
train_x, train_y = leaves[:800], species[:800]
test_x, test_y = leaves[800:], species[800:]

model = keras.Sequential(
    [
        layers.Input((8,)),
        layers.Dense(48, activation="relu"),
        layers.Dropout(0.1),
        layers.Dense(48, activation="relu"),
        layers.Dense(SPECIES),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(train_x, train_y, batch_size=40, epochs=10, validation_data=(test_x, test_y), verbose=2)
print(f"test accuracy {model.evaluate(test_x, test_y, verbose=0)[1]:.4f}")
