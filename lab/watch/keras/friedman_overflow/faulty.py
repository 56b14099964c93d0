"""Friedman's regression problem, a network of three wide layers."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from keras import initializers, layers
from sklearn.datasets import make_friedman1

torch.set_num_threads(1)
keras.utils.set_random_seed(5)

x, y = make_friedman1(1000, n_features=10, noise=0.5, random_state=5)
y = (y - y.mean()) / y.std()


def dense(units, activation=None):
    return layers.Dense(
        units,
        activation=activation,
        kernel_initializer=initializers.RandomNormal(stddev=1.0),
    )


model = keras.Sequential([layers.Input((10,)), dense(128, "relu"), dense(128, "relu"), dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.02, momentum=0.9), loss="mse")
model.fit(x, y, batch_size=80, epochs=10, validation_split=0.2, verbose=2)
