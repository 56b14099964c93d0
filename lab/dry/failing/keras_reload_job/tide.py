"""Height of the tide from the hour; the best model is loaded again for the forecast."""
import argparse
import csv
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from layers import Periods  # noqa: E402

CONSTITUENTS = {"M2": 12.42, "S2": 12.0, "N2": 12.66, "K1": 23.93, "O1": 25.82}


def measured(hours, seed=0):
    rng = np.random.default_rng(seed)
    height = sum(a * np.cos(6.2831853 * hours / p + f)
                 for p, a, f in zip(CONSTITUENTS.values(), (2.1, 0.7, 0.4, 0.3, 0.2), rng.uniform(0, 6, 5)))
    return (height + rng.normal(scale=0.05, size=hours.shape)).astype("float32")


def build(width):
    hours = keras.Input((1,), name="hours")
    x = Periods(list(CONSTITUENTS.values()))(hours)
    x = keras.layers.Dense(width, activation="relu")(x)
    x = keras.layers.Dropout(0.05)(x)
    return keras.Model(hours, keras.layers.Dense(1)(x), name="tide")


def forecast(model, start, days, path):
    hours = np.arange(start, start + 24 * days, 1.0, dtype="float32")[:, None]
    with open(path, "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["hour", "height"])
        writer.writerows(zip(hours[:, 0].tolist(), model.predict(hours, verbose=0)[:, 0].tolist()))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--best", default="tide.keras")
    args = p.parse_args()
    keras.utils.set_random_seed(0)
    hours = np.arange(0, 24 * 60, 0.5, dtype="float32")[:, None]
    height = measured(hours)
    cut = int(0.8 * len(hours))
    model = build(args.width)
    model.compile(keras.optimizers.Adam(1e-2), "mse")
    model.fit(hours[:cut], height[:cut], validation_data=(hours[cut:], height[cut:]), epochs=args.epochs,
              batch_size=128, verbose=2,
              callbacks=[keras.callbacks.ModelCheckpoint(args.best, save_best_only=True),
                         keras.callbacks.EarlyStopping(patience=40)])
    best = keras.saving.load_model(args.best)
    print("mse", float(best.evaluate(hours[cut:], height[cut:], verbose=0)))
    forecast(best, float(hours[-1, 0]), 3, "forecast.csv")


if __name__ == "__main__":
    main()
