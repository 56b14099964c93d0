import argparse
import json
import pathlib

import keras
import numpy as np

from denoise import model as models


def snr(clean, other):
    noise = np.sum((clean - other) ** 2, axis=(1, 2))
    return float(np.mean(10 * np.log10(np.sum(clean ** 2, axis=(1, 2)) / np.maximum(noise, 1e-12))))


def load(path):
    array = np.load(path).astype("float32")
    return array[..., None] if array.ndim == 2 else array


def export(model, folder, fmt):
    """Leaves the model where the service takes it up."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "denoiser"
    if fmt == "weights":
        target = target.with_suffix(".weights.h5")
        model.save_weights(target)
    else:
        model.save(target)
    return target


def main(argv=None):
    parser = argparse.ArgumentParser(prog="denoise")
    parser.add_argument("--noisy", required=True)
    parser.add_argument("--clean", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--format", choices=["model", "weights"], default="model")
    args = parser.parse_args(argv)
    noisy, clean = load(args.noisy), load(args.clean)
    keras.utils.set_random_seed(5)
    cut = int(0.9 * len(noisy))
    network = models.build(noisy.shape[1])
    network.compile(keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
    args.out.mkdir(parents=True, exist_ok=True)
    callbacks = [
        keras.callbacks.ModelCheckpoint(str(args.out / "best.keras"), save_best_only=True),
        keras.callbacks.ReduceLROnPlateau(patience=5),
        keras.callbacks.CSVLogger(str(args.out / "log.csv")),
    ]
    network.fit(noisy[:cut], clean[:cut], validation_data=(noisy[cut:], clean[cut:]),
                batch_size=64, epochs=args.epochs, callbacks=callbacks, verbose=2)
    best = keras.saving.load_model(args.out / "best.keras")
    scores = {"before": snr(clean[cut:], noisy[cut:]), "after": snr(clean[cut:], best.predict(noisy[cut:], verbose=0))}
    (args.out / "scores.json").write_text(json.dumps(scores))
    print(scores, export(best, args.out / "export", args.format))
    return 0
