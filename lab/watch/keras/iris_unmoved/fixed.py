"""Irises by the measures of their leaves."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from sklearn.datasets import load_iris

torch.set_num_threads(1)
keras.utils.set_random_seed(1)

iris = load_iris()
order = np.random.permutation(150)
x = ((iris.data - iris.data.mean(0)) / iris.data.std(0)).astype("float32")[order]
y = iris.target[order]

model = keras.Sequential([keras.Input((4,))])
model.add(keras.layers.Dense(24, activation="tanh"))
model.add(keras.layers.Dense(3, activation="softmax"))
optimizer = keras.optimizers.Adam(learning_rate=2e-2)
model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x[:120], y[:120], batch_size=15, epochs=10, verbose=2)
loss, accuracy = model.evaluate(x[120:], y[120:], verbose=0)
print(f"test loss: {loss:.4f} test accuracy: {accuracy:.4f}")
