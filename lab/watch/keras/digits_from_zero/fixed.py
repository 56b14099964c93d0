"""Digits of eight by eight, a plain network."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import argparse

import keras
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=128)
args = parser.parse_args()

torch.set_num_threads(1)
keras.utils.set_random_seed(4)
digits = load_digits()
x_train, x_test, y_train, y_test = train_test_split(
    digits.data / 16.0, keras.utils.to_categorical(digits.target), random_state=4
)
model = keras.Sequential(
    [
        keras.Input((64,)),
        keras.layers.Dense(64, activation="relu", kernel_initializer="he_normal", name="first"),
        keras.layers.Dense(32, activation="relu", name="second"),
        keras.layers.Dense(10, activation="softmax", name="digit"),
    ]
)
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
model.fit(
    x_train,
    y_train,
    batch_size=args.batch_size,
    epochs=args.epochs,
    validation_data=(x_test, y_test),
    verbose=2,
)
