"""Rising, falling or swinging? Short time series for a GRU."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

torch.set_num_threads(1)
keras.utils.set_random_seed(7)


def series(count, steps=12):
    kinds = np.random.randint(0, 3, count)
    time = np.linspace(0, 1, steps)
    start = np.random.normal(0, 0.3, (count, 1))
    shapes = np.stack([time, -time, np.sin(4 * np.pi * time)])
    values = start + 1.2 * shapes[kinds] + np.random.normal(0, 0.35, (count, steps))
    return values[..., None].astype("float32"), kinds


x, y = series(800)
x_val, y_val = series(300)
inputs = keras.Input((12, 1))
hidden = keras.layers.GRU(20, name="gru")(inputs)
outputs = keras.layers.Dense(3, activation="softmax", name="kind")(hidden)
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=2.0),
    loss=keras.losses.SparseCategoricalCrossentropy(),
    metrics=["accuracy"],
)
for epoch in range(8):
    history = model.fit(x, y, batch_size=100, verbose=0)
    loss, accuracy = model.evaluate(x_val, y_val, batch_size=300, verbose=0)
    print(
        f"epoch {epoch + 1}: loss {history.history['loss'][0]:.4f} "
        f"val loss {loss:.4f} val accuracy {accuracy:.4f}"
    )
