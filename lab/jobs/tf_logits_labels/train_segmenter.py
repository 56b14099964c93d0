"""Train a tiny segmentation network with Keras."""
import logging
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
import numpy as np
import keras
from keras import layers

log = logging.getLogger("segmenter")


def data(n=64, size=32, classes=4):
    rng = np.random.default_rng(0)
    images = rng.random((n, size, size, 3), dtype="float32")
    masks = rng.integers(0, classes, (n, size, size))
    return images, masks


def build(classes=4):
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    return keras.Model(inputs, layers.Conv2D(classes, 1)(x))       # half the mask's size


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    images, masks = data()
    log.info("images %s masks %s", images.shape, masks.shape)
    model = build()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, masks, batch_size=16, epochs=1, verbose=2)


if __name__ == "__main__":
    main()
