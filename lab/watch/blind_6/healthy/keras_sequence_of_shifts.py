"""A Keras model that is fed by a data set of its own: machine shifts, read in batches from one array."""
import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np

SEED = 83
keras.utils.set_random_seed(SEED)
rng = np.random.default_rng(SEED)


def shifts(count):
    states = rng.integers(12, size=count)
    time = np.linspace(0, 1, 32)
    speed = (2 + 0.6 * states)[:, None] + rng.normal(0, 0.1, (count, 1))
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    signal = np.sin(2 * np.pi * speed * time + phase) + rng.normal(0, 0.4, (count, 32))
    return signal[..., None].astype("float32"), states


class Shifts(keras.utils.PyDataset):
    def __init__(self, signals, states, size, shuffle=False):
        super().__init__()
        self.signals, self.states, self.size, self.shuffle = signals, states, size, shuffle
        self.order = np.arange(len(signals))
        self.on_epoch_end()

    def __len__(self):
        return -(-len(self.signals) // self.size)

    def __getitem__(self, number):
        low = number * self.size
        index = self.order[low : low + self.size]
        return self.signals[index], self.states[index]

    def on_epoch_end(self):
        if self.shuffle:
            rng.shuffle(self.order)


signals, states = shifts(1200)
train = Shifts(signals[:1000], states[:1000], 25)
val = Shifts(signals[1000:], states[1000:], 100)
model = keras.Sequential(
    [
        keras.Input((32, 1)),
        keras.layers.Conv1D(24, 7, padding="same", activation="relu"),
        keras.layers.MaxPooling1D(2),
        keras.layers.Conv1D(32, 5, padding="same", activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(12),
    ]
)
model.compile(
    keras.optimizers.AdamW(4e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
model.fit(train, epochs=12, validation_data=val, verbose=2)
test_signals, test_states = shifts(800)
loss, accuracy = model.evaluate(test_signals, test_states, batch_size=200, verbose=0)
print(f"test loss {loss:.4f}, test accuracy {accuracy:.4f}")
