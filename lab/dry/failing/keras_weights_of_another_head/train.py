import keras
import numpy as np


def built(classes):
    return keras.Sequential(
        [keras.Input((12,)), keras.layers.Dense(24, activation="relu"), keras.layers.Dense(classes)]
    )


x, y = np.random.rand(4000, 12).astype("float32"), np.random.randint(0, 10, 4000)
model = built(10)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("sgd", loss, metrics=["accuracy"])
model.fit(x, y, epochs=60, verbose=2)
model.save_weights("pretrained.weights.h5")

finetuned = built(3)
finetuned.load_weights("pretrained.weights.h5")
finetuned.compile("sgd", loss)
finetuned.fit(x, y % 3, epochs=10, verbose=2)
