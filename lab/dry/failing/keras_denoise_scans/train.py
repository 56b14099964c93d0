import keras
import numpy as np
from keras import layers


def build(size):
    image = keras.Input((size, size, 1))
    x = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(image)
    x = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(16, 3, strides=2, padding="same", activation="relu")(x)
    out = layers.Conv2D(1, 3, padding="same", activation="sigmoid")(x)
    return keras.Model(image, out)


def main():
    keras.utils.set_random_seed(7)
    clean = np.random.default_rng(0).random((64, 30, 30, 1)).astype("float32")
    noisy = np.clip(clean + 0.1 * np.random.default_rng(1).standard_normal(clean.shape), 0, 1).astype("float32")
    model = build(30)
    model.summary()
    model.compile(optimizer="adam", loss="mse")
    model.fit(noisy, clean, epochs=3, batch_size=16, validation_split=0.1)
    model.save("denoiser.keras")


if __name__ == "__main__":
    main()
