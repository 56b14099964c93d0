"""Regular or irregular heart beats from a short signal: one-dimensional convolutions in Keras 3."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)


def signal(irregular):
    gaps = 12 + (rng.normal(0, 3, 6) if irregular else rng.normal(0, 0.4, 6))
    times = np.arange(64)[:, None]
    wave = np.exp(-0.5 * ((times - np.cumsum(gaps)) / 1.2) ** 2).sum(1)
    return wave + 0.05 * rng.normal(size=64)


labels = rng.integers(0, 2, 1200)
signals = np.stack([signal(one) for one in labels])[..., None].astype("float32")
signals = (signals - signals.mean()) / signals.std()

model = keras.Sequential(
    [
        keras.Input((64, 1)),
        layers.Conv1D(16, 5, activation="relu"),
        layers.MaxPooling1D(2),
        layers.Conv1D(32, 5, activation="relu"),
        layers.MaxPooling1D(2),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=["accuracy"]
)
model.fit(signals[:1000], labels[:1000], batch_size=32, epochs=8, verbose=0, validation_split=0.1)
loss, accuracy = model.evaluate(signals[1000:], labels[1000:], verbose=0)
print(f"loss {loss:.3f} accuracy {accuracy:.3f}")
