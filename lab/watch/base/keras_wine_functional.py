"""Three wines by thirteen measurements: a functional Keras model that brings them to scale itself, one-hot labels."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from keras import layers
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)
torch.set_num_threads(1)

x, y = load_wine(return_X_y=True)
x = x.astype("float32")
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.3, random_state=1, stratify=y)
scaler = layers.Normalization()
scaler.adapt(x_train)

inputs = layers.Input((13,))
hidden = scaler(inputs)
hidden = layers.Dense(24, activation="relu", name="first")(hidden)
hidden = layers.Dropout(0.2, name="drop")(hidden)
hidden = layers.Dense(16, activation="relu", name="second")(hidden)
outputs = layers.Dense(3, activation="softmax", name="head")(hidden)
model = keras.Model(inputs, outputs)
optimizer = keras.optimizers.Adam(learning_rate=5e-3)
model.compile(optimizer=optimizer, loss="categorical_crossentropy", metrics=["accuracy"])
history = model.fit(
    x_train,
    keras.utils.to_categorical(y_train, 3),
    batch_size=16,
    epochs=20,
    validation_data=(x_val, keras.utils.to_categorical(y_val, 3)),
    verbose=2,
)
print(f"val accuracy {history.history['val_accuracy'][-1]:.4f}")
