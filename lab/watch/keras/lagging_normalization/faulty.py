"""Spots left or right, above or below: pictures of twelve by twelve for a small CNN."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers

torch.set_num_threads(1)
keras.utils.set_random_seed(2)


def pictures(count):
    labels = np.random.randint(0, 4, count)
    images = np.random.normal(0, 0.5, (count, 12, 12, 1))
    for image, label in zip(images, labels):
        row, column = np.random.randint(0, 4, 2) + 6 * np.array([label // 2, label % 2])
        image[row : row + 2, column : column + 2] += 1.5
    return (images * 40 + 110).astype("float32"), labels


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.conv = layers.Conv2D(12, 3, padding="same", use_bias=False, name="conv")
        self.norm = layers.BatchNormalization(momentum=0.9999, name="norm")
        self.pool = layers.MaxPooling2D(3)
        self.flatten = layers.Flatten()
        self.out = layers.Dense(4, name="out")

    def call(self, images, training=False):
        x = self.conv(images)
        x = keras.ops.relu(self.norm(x, training=training))
        return self.out(self.flatten(self.pool(x)))


x_train, y_train = pictures(900)
x_val, y_val = pictures(300)
model = Net()
model.compile(
    optimizer=keras.optimizers.Adam(5e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(x_train, y_train, batch_size=90, epochs=9, validation_data=(x_val, y_val), verbose=2)
