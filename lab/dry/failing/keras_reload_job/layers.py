import keras
from keras import ops


@keras.saving.register_keras_serializable("tide")
class Periods(keras.layers.Layer):
    """Sines and cosines of given periods, with learned phases."""

    def __init__(self, periods, trainable_phase=True, **kwargs):
        super().__init__(**kwargs)
        self.rates = [6.2831853 / p for p in periods]
        self.trainable_phase = trainable_phase

    def build(self, shape):
        self.phase = self.add_weight(shape=(len(self.rates),), initializer="zeros",
                                     trainable=self.trainable_phase, name="phase")

    def call(self, hours):
        angle = hours * ops.convert_to_tensor(self.rates, dtype="float32") + self.phase
        return ops.concatenate([ops.sin(angle), ops.cos(angle)], axis=-1)

    def get_config(self):
        config = super().get_config()
        config.update(rates=self.rates, trainable_phase=self.trainable_phase)
        return config
