"""Fills gaps in curves with a Keras model that has its own training step."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch
from keras import layers

torch.set_num_threads(1)
keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
time = np.linspace(0, 1, 32)


def curves(count: int) -> np.ndarray:
    phase, rate = random.uniform(0, 6.28, (count, 1)), random.uniform(4, 12, (count, 1))
    return np.sin(rate * time + phase).astype("float32")


class Inpainter(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = keras.Sequential([layers.Dense(96, activation="relu"), layers.Dense(24, activation="relu")])
        self.decoder = keras.Sequential([layers.Dense(96, activation="relu"), layers.Dense(32)])
        self.error = keras.metrics.Mean(name="gap_error")

    @property
    def metrics(self):
        return [self.error]

    def call(self, seen):
        return self.decoder(self.encoder(seen))

    def hide(self, whole):
        gap = (torch.rand(whole.shape) < 0.3).to(whole.dtype)
        return whole * (1 - gap), gap

    def train_step(self, data):
        whole = data
        seen, gap = self.hide(whole)
        self.zero_grad()
        filled = self(seen, training=True)
        loss = (gap * (filled - whole) ** 2).sum() / gap.sum()
        loss.backward()
        variables = [value for value in self.trainable_weights]
        gradients = [value.value.grad for value in variables]
        with torch.no_grad():
            self.optimizer.apply(gradients, variables)
        self.error.update_state(loss)
        return {"gap_error": self.error.result()}

    def test_step(self, data):
        seen, gap = self.hide(data)
        filled = self(seen, training=False)
        self.error.update_state((gap * (filled - data) ** 2).sum() / gap.sum())
        return {"gap_error": self.error.result()}


train, test = curves(1200), curves(300)
model = Inpainter()
model.compile(optimizer=keras.optimizers.Adam(2e-3))
model.fit(train, batch_size=60, epochs=8, verbose=2)
print(f"test gap error {model.evaluate(test, verbose=0, return_dict=True)['gap_error']:.4f}")
