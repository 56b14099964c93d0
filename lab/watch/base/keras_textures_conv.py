"""Three textures in gray images from 0 to 255: a small Keras network with batch normalization, on numbers of classes."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers

keras.utils.set_random_seed(1)
torch.set_num_threads(1)
generator = np.random.default_rng(1)


def textures(count):
    """Stripes along rows, along columns, and a checkerboard, in noise."""
    labels = generator.integers(0, 3, count)
    row, column = np.mgrid[0:12, 0:12]
    shift = generator.integers(0, 4, (count, 1, 1))
    phases = np.stack([row, column, row + column])[labels] + shift
    images = 128 + 60 * np.where(phases % 4 < 2, 1.0, -1.0) + 50 * generator.normal(size=(count, 12, 12))
    return np.clip(images, 0, 255)[..., None].astype("float32"), labels


x_train, y_train = textures(600)
x_val, y_val = textures(240)
model = keras.Sequential([
    layers.Input((12, 12, 1)),
    layers.Rescaling(1 / 127.5, offset=-1.0),
    layers.Conv2D(8, 3, padding="same", use_bias=False, name="edges"),
    layers.BatchNormalization(momentum=0.9, name="norm"),
    layers.Activation("relu", name="bend"),
    layers.Conv2D(12, 3, strides=2, activation="relu", name="parts"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(3, name="head"),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=loss, metrics=["accuracy"])
history = model.fit(
    x_train, y_train, batch_size=32, epochs=8, validation_data=(x_val, y_val), verbose=2, shuffle=True
)
print(f"val accuracy {history.history['val_accuracy'][-1]:.4f}")
