"""Keras on torch, functional: wine chemistry gives the vineyard and the alcohol, with two losses and an L2 penalty on few data.

Should reach: vineyard accuracy of at least 0.93.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(3)
torch.set_num_threads(1)

table, vineyard = load_wine(return_X_y=True)
train, val = train_test_split(range(len(table)), test_size=0.3, random_state=3, stratify=vineyard)
table = StandardScaler().fit(table[train]).transform(table).astype("float32")
alcohol, chemistry = table[:, :1], table[:, 1:]

inputs = keras.Input((12,), name="chemistry")
hidden = keras.layers.Dense(24, activation="relu", kernel_regularizer=keras.regularizers.L2(2e-3))(inputs)
hidden = keras.layers.Dropout(0.2)(hidden)
outputs = {
    "vineyard": keras.layers.Dense(3, name="vineyard")(hidden),
    "alcohol": keras.layers.Dense(1, name="alcohol")(hidden),
}
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.AdamW(3e-3, weight_decay=1e-2),
    loss={"vineyard": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "alcohol": "mse"},
    loss_weights={"vineyard": 1.0, "alcohol": 0.3},
    metrics={"vineyard": "accuracy"},
)
model.fit(
    chemistry[train], {"vineyard": vineyard[train], "alcohol": alcohol[train]}, batch_size=16, epochs=30, verbose=2,
    validation_data=(chemistry[val], {"vineyard": vineyard[val], "alcohol": alcohol[val]}),
)
scores = model.evaluate(chemistry[val], {"vineyard": vineyard[val], "alcohol": alcohol[val]}, verbose=0, return_dict=True)
print(f"alcohol mse {scores['alcohol_loss']:.4f}")
print(f"vineyard accuracy {scores['vineyard_accuracy']:.4f}")
