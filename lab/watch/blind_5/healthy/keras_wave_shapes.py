"""Keras 3 on torch: four shapes of waves, generated shape by shape."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from keras import layers

SEED = 22
keras.utils.set_random_seed(SEED)
rng = np.random.default_rng(SEED)


def waves(count):
    time = np.linspace(0, 12.6, 48)
    rows, labels = [], []
    for shape in range(4):
        phase = time[None] * rng.uniform(0.8, 1.6, (count, 1)) + rng.uniform(0, 6.28, (count, 1))
        saw = np.mod(phase, 6.28) / 3.14 - 1
        clean = [np.sin(phase), np.sign(np.sin(phase)), saw, 2 * np.abs(saw) - 1][shape]
        rows.append(clean + 0.25 * rng.standard_normal(clean.shape))
        labels.append(np.full(count, shape))
    return np.concatenate(rows).astype("float32")[..., None], np.concatenate(labels)


x, y = waves(350)
order = rng.permutation(len(x))
x, y = x[order], y[order]
test_x, test_y = waves(100)
model = keras.Sequential([
    keras.Input((48, 1)),
    layers.Conv1D(16, 5, activation="relu"),
    layers.MaxPooling1D(2),
    layers.Conv1D(24, 5, activation="relu"),
    layers.GlobalAveragePooling1D(),
    layers.Dense(4),
])
model.compile(
    optimizer=keras.optimizers.Adam(5e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = model.fit(x, y, validation_split=0.25, epochs=12, batch_size=32, verbose=0)
for epoch, loss in enumerate(history.history["loss"]):
    print(f"epoch {epoch} loss {loss:.4f} val_accuracy {history.history['val_accuracy'][epoch]:.4f}")
print(f"test accuracy {model.evaluate(test_x, test_y, verbose=0)[1]:.4f}")
