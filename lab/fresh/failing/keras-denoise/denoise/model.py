import keras
from keras import layers


@keras.saving.register_keras_serializable("denoise")
class Residual(layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.first = layers.Conv1D(filters, 5, padding="same", activation="relu")
        self.second = layers.Conv1D(filters, 5, padding="same")

    def call(self, x):
        return x + self.second(self.first(x))

    def get_config(self):
        return {**super().get_config(), "filters": self.filters}


def build(length, filters=32, blocks=4):
    inputs = keras.Input((length, 1))
    x = layers.Conv1D(filters, 9, padding="same")(inputs)
    for _ in range(blocks):
        x = Residual(filters)(x)
    return keras.Model(inputs, layers.Conv1D(1, 9, padding="same")(x), name="denoiser")
