import argparse
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = os.environ.get("DENOISE_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402

ops = keras.ops


@keras.saving.register_keras_serializable()
class Scale(keras.layers.Layer):
    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), initializer="ones", name="gain")

    def call(self, x):
        return x * self.gain


class Shift(keras.layers.Layer):
    def __init__(self, by=0.0, **kwargs):
        super().__init__(**kwargs)
        self.by = by

    def call(self, x):
        return x + self.by

    def get_config(self):
        return super().get_config() | {"by": self.by}


def psnr(truth, guess):
    return -10.0 * ops.log(ops.mean(ops.square(truth - guess)) + 1e-9) / ops.log(10.0)


def with_suffix(path, suffix=".keras"):
    path = Path(path)
    return path if path.suffix in (".keras", ".h5") else path.with_name(path.name + suffix)


def build(length):
    return keras.Sequential([
        keras.Input((length, 1)), Shift(0.1), keras.layers.Conv1D(16, 7, padding="same", activation="gelu"),
        Scale(), keras.layers.Conv1D(1, 7, padding="same")])


class Note(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        value = (logs or {}).get("val_psnr", (logs or {}).get("psnr"))
        if value is not None and epoch % 20 == 0:
            print(f"{epoch}: {value:.2f} dB")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", default=os.path.join(os.sep, "data", "denoise"))
    p.add_argument("--out", required=True)
    p.add_argument("--epochs", type=int, default=10)
    args = p.parse_args()
    noisy, clean = (np.load(Path(args.root) / f"{n}.npy").astype("float32") for n in ("noisy", "clean"))
    noisy, clean = (a if a.ndim == 3 else a[..., np.newaxis] for a in (noisy, clean))
    target = with_suffix(args.out)
    target.parent.mkdir(parents=True, exist_ok=True)
    model = build(noisy.shape[1])
    model.compile("adam", "mse", metrics=[psnr])
    model.fit(noisy, clean, validation_split=0.1, epochs=args.epochs, batch_size=128, verbose=0, callbacks=[Note()])
    model.save(target)
    back = keras.saving.load_model(target, custom_objects={"Shift": Shift, "psnr": psnr})
    gap = np.abs(back.predict(noisy[:4], verbose=0) - model.predict(noisy[:4], verbose=0)).max()
    print("saved", target, "difference", gap)
    if hasattr(back, "export") and os.environ.get("DENOISE_EXPORT") == "1":
        back.export(str(target.with_suffix("")))


if __name__ == "__main__":
    main()
