import keras
import numpy as np
from keras import layers, ops


@keras.saving.register_keras_serializable()
class Distance(layers.Layer):
    def call(self, pair):
        left, right = pair
        return ops.sqrt(ops.sum(ops.square(left - right), axis=-1, keepdims=True) + 1e-9)


def main():
    keras.utils.set_random_seed(0)
    tower = keras.Sequential([keras.Input((16,)), layers.Dense(32, activation="relu"), layers.Dense(8)])
    left, right = keras.Input((16,)), keras.Input((16,))
    out = layers.Dense(1, activation="sigmoid")(Distance()([tower(left), tower(right)]))
    model = keras.Model([left, right], out)
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    rng = np.random.default_rng(0)
    a = rng.standard_normal((256, 16)).astype("float32")
    same = rng.integers(0, 2, 256)
    b = np.where(same[:, None] == 1, a + 0.1 * rng.standard_normal(a.shape), rng.standard_normal(a.shape)).astype("float32")
    history = model.fit([a, b], same, epochs=5, validation_split=0.25, verbose=0)
    assert len(history.history["val_loss"]) == 5
    model.save("siamese.keras")
    again = keras.saving.load_model("siamese.keras")
    print(again.evaluate([a, b], same, verbose=0))


if __name__ == "__main__":
    main()
