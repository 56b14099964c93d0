"""Wines by cultivar, a network of many small layers."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.set_num_threads(1)
keras.utils.set_random_seed(3)

x, y = load_wine(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y, random_state=3, stratify=y)
scaler = StandardScaler()
x_train = scaler.fit_transform(x_train)
x_test = scaler.transform(x_test)


def build(depth=6, width=24):
    inputs = keras.Input((13,))
    hidden = inputs
    for number in range(depth):
        hidden = keras.layers.Dense(width, activation="relu", name=f"hidden_{number}")(hidden)
    outputs = keras.layers.Dense(3, activation="softmax", name="cultivar")(hidden)
    return keras.Model(inputs, outputs)


model = build()
model.compile(
    optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(x_train, y_train, batch_size=19, epochs=12, validation_data=(x_test, y_test), verbose=2)
