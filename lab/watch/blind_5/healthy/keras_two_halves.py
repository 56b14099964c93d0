"""Keras 3 on torch, functional: the two halves of a digit enter on their own branches."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 23
keras.utils.set_random_seed(SEED)
x, y = load_digits(return_X_y=True)
x = x.reshape(-1, 8, 8).astype("float32") / 16
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=500, random_state=SEED)


def halves(images):
    return [images[:, :4].reshape(-1, 32), images[:, 4:].reshape(-1, 32)]


def branch(inputs):
    hidden = layers.Dense(32, activation="relu")(inputs)
    return layers.Dense(24, activation="relu")(hidden)


upper, lower = keras.Input((32,)), keras.Input((32,))
both = layers.Concatenate()([branch(upper), branch(lower)])
both = layers.Dropout(0.1)(both)
both = layers.Dense(32, activation="relu")(both)
both = layers.Dropout(0.1)(both)
model = keras.Model([upper, lower], layers.Dense(10, activation="softmax")(both))
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(
    halves(x_train), y_train, validation_data=(halves(x_test), y_test), epochs=10, batch_size=32, verbose=0
)
for epoch, accuracy in enumerate(history.history["val_accuracy"]):
    print(f"epoch {epoch} loss {history.history['loss'][epoch]:.4f} val accuracy {accuracy:.4f}")
