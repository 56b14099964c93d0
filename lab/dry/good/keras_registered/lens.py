"""Focal length from spot diagrams, in Keras with own parts."""
import argparse
import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers, ops  # noqa: E402


@keras.saving.register_keras_serializable("lens")
class Radial(layers.Layer):
    def __init__(self, rings=8, **kwargs):
        super().__init__(**kwargs)
        self.rings = rings

    def build(self, shape):
        size = shape[1]
        grid = np.hypot(*np.mgrid[:size, :size] - (size - 1) / 2)
        ring = np.minimum((grid / grid.max() * self.rings).astype(int), self.rings - 1)
        self.masks = np.stack([(ring == k) / max((ring == k).sum(), 1) for k in range(self.rings)]).astype("float32")

    def call(self, image):
        return ops.einsum("bhwc,khw->bkc", image, ops.convert_to_tensor(self.masks))

    def get_config(self):
        return {**super().get_config(), "rings": self.rings}


@keras.saving.register_keras_serializable("lens")
def relative(truth, guess):
    return ops.mean(ops.abs(truth - guess) / (ops.abs(truth) + 1e-3))


@keras.saving.register_keras_serializable("lens")
class Ramp(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, steps):
        self.peak, self.steps = peak, steps

    def __call__(self, step):
        return self.peak * ops.minimum(1.0, (ops.cast(step, "float32") + 1.0) / self.steps)

    def get_config(self):
        return {"peak": self.peak, "steps": self.steps}


def spots(count, size=24, seed=0):
    rng = np.random.default_rng(seed)
    focus = rng.uniform(0.5, 3.0, count).astype("float32")
    grid = np.hypot(*np.mgrid[:size, :size] - (size - 1) / 2)
    image = np.exp(-(grid / (3 * focus[:, None, None])) ** 2) + rng.normal(scale=0.05, size=(count, size, size))
    return image[..., None].astype("float32"), focus[:, None]


def build(size):
    image = keras.Input((size, size, 1))
    x = layers.Flatten()(Radial(10, name="radial")(image))
    x = layers.Dense(32, activation="relu", name="hidden")(x)
    return keras.Model(image, layers.Dense(1, name="focus")(x))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    args = p.parse_args()
    keras.utils.set_random_seed(1)
    x, y = spots(600)
    model = build(x.shape[1])
    model.compile(keras.optimizers.Adam(Ramp(3e-3, 50)), loss=relative, metrics=["mae"])
    keep = keras.callbacks.ModelCheckpoint("lens.keras", monitor="val_mae", save_best_only=True)
    history = model.fit(x, y, validation_split=0.2, epochs=args.epochs, batch_size=32, callbacks=[keep], verbose=0)
    print(len(history.history["val_mae"]), min(history.history["val_mae"]))
    best = keras.saving.load_model("lens.keras")
    best.get_layer("radial").trainable = False
    best.compile(keras.optimizers.SGD(1e-3), loss="mse", metrics=[keras.metrics.RootMeanSquaredError(name="rmse")])
    more = best.fit(x, y, epochs=max(1, args.epochs // 4), verbose=0)
    print("rmse", more.history["rmse"][-1])
    best.save_weights("lens.weights.h5")
    fresh = build(x.shape[1])
    fresh.load_weights("lens.weights.h5")
    test_x, test_y = spots(50, seed=5)
    np.testing.assert_allclose(fresh.predict(test_x, verbose=0), best.predict(test_x, verbose=0), rtol=1e-4)
    print("test", float(np.abs(fresh.predict(test_x, verbose=0) - test_y).mean()))


if __name__ == "__main__":
    main()
