"""Finds the few leaking valves among many with Keras; the classes are weighted by how rare they are."""
import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np

SEED = 71
keras.utils.set_random_seed(SEED)
rng = np.random.default_rng(SEED)


def valves(count):
    kind = rng.choice(3, count, p=[0.9, 0.06, 0.04])
    angle = rng.uniform(0, 2 * np.pi, count)
    radius = np.where(kind == 0, rng.normal(1.0, 0.5, count), np.where(kind == 1, 1.9, 0.2) + rng.normal(0, 0.25, count))
    features = np.stack([radius * np.cos(angle), radius * np.sin(angle), *rng.normal(0, 1, (3, count))], 1)
    return features.astype("float32"), kind


def weights_of(kinds):
    counts = np.bincount(kinds)
    return {kind: len(kinds) / (len(counts) * count) for kind, count in enumerate(counts)}


x, kinds = valves(3000)
test_x, test_kinds = valves(3000)
model = keras.Sequential(
    [
        keras.Input((5,)),
        keras.layers.Dense(48, activation="relu"),
        keras.layers.Dense(48, activation="relu"),
        keras.layers.Dense(3, activation="softmax"),
    ]
)
model.compile(keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
slower = keras.callbacks.ReduceLROnPlateau(monitor="val_accuracy", mode="max", factor=0.2, patience=3, min_lr=1e-6)
weight = weights_of(kinds)
held = slice(2400, None)
val_weight = np.array([weight[kind] for kind in kinds[held]])
model.fit(
    x[:2400], kinds[:2400], batch_size=64, epochs=14, verbose=2, class_weight=weight,
    validation_data=(x[held], kinds[held], val_weight), callbacks=[slower],
)
found = model.predict(test_x, verbose=0).argmax(1)
recalls = [np.mean(found[test_kinds == kind] == kind) for kind in range(3)]
print("recalls:", " ".join(f"{recall:.3f}" for recall in recalls))
print(f"mean recall: {np.mean(recalls):.4f}")
