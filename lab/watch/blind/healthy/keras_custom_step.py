"""A Keras 3 model with its own train_step (torch backend): counts the bright spots of a small image."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers

keras.utils.set_random_seed(47)
rng = np.random.default_rng(47)


def spots(n):
    count = rng.integers(0, 6, n)
    images = rng.normal(0, 0.1, (n, 16, 16, 1)).astype("float32")
    for image, k in zip(images, count):
        for at in rng.choice(64, k, replace=False):
            image[at // 8 * 2:at // 8 * 2 + 2, at % 8 * 2:at % 8 * 2 + 2] += 1
    return images, count.astype("float32")[:, None]


class Counter(keras.Model):
    def __init__(self):
        super().__init__()
        self.conv = layers.Conv2D(12, 2, strides=2, activation="relu")
        self.norm = layers.BatchNormalization(momentum=0.9)
        self.pool = layers.GlobalAveragePooling2D()
        self.dense = layers.Dense(32, activation="relu")
        self.out = layers.Dense(1)

    def call(self, x, training=False):
        x = self.pool(self.norm(self.conv(x), training=training))
        return self.out(self.dense(x))

    def train_step(self, data):
        x, y = data
        self.zero_grad()
        y_pred = self(x, training=True)
        loss = self.compute_loss(y=y, y_pred=y_pred)
        loss.backward()
        weights = list(self.trainable_weights)
        with torch.no_grad():
            self.optimizer.apply([w.value.grad for w in weights], weights)
        for metric in self.metrics:
            metric.update_state(loss) if metric.name == "loss" else metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


x_train, y_train = spots(1200)
x_val, y_val = spots(300)
model = Counter()
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse", metrics=["mae"])
model.fit(x_train, y_train, epochs=12, batch_size=32, verbose=2)
print(f"validation mae {model.evaluate(x_val, y_val, verbose=0, return_dict=True)['mae']:.4f}")
