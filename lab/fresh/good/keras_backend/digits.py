"""Small Keras model on torch."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras  # noqa: E402
import numpy as np  # noqa: E402

try:
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
except ImportError:
    tf = None


@keras.saving.register_keras_serializable(package="digits")
class Scale(keras.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="factor")

    def call(self, inputs):
        return inputs * self.factor


def pictures(count, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    images = rng.normal(0, 0.2, (count, 12, 12, 1)).astype("float32")
    for image, label in zip(images, labels):
        image[4 * label : 4 * label + 4] += 1
    return images, labels


def build():
    inputs = keras.Input((12, 12, 1))
    x = keras.layers.Conv2D(8, 3, activation="relu")(inputs)
    x = keras.layers.GlobalAveragePooling2D()(x)
    x = Scale()(x)
    return keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x))


class Stop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if (logs or {}).get("loss", 1.0) < 0.01:
            self.model.stop_training = True


def main():
    assert keras.backend.backend() in ("torch", "jax", "tensorflow")
    model = build()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(
        *pictures(64, 0), validation_data=pictures(32, 1), epochs=2, verbose=0, callbacks=[Stop()]
    )
    model.save("digits.keras")
    again = keras.models.load_model("digits.keras")
    scores = again.evaluate(*pictures(32, 2), verbose=0, return_dict=True)
    print(history.history["val_accuracy"][-1], scores["accuracy"])
    if tf is not None:
        print(tf.__version__)


if __name__ == "__main__":
    main()
