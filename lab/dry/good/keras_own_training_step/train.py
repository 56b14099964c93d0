import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


class VariationalAutoencoder(keras.Model):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = keras.Sequential([layers.Dense(32, "relu"), layers.Dense(2 * latent)])
        self.decoder = keras.Sequential([layers.Dense(32, "relu"), layers.Dense(20)])
        self.seeds = keras.random.SeedGenerator(0)
        self.total = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.total]

    def call(self, x):
        mean, spread = ops.split(self.encoder(x), 2, axis=-1)
        noise = keras.random.normal(ops.shape(mean), seed=self.seeds)
        return self.decoder(mean + ops.exp(0.5 * spread) * noise), mean, spread

    def loss_of(self, x):
        made, mean, spread = self(x)
        divergence = -0.5 * ops.sum(1 + spread - mean**2 - ops.exp(spread), -1)
        return ops.mean(ops.sum((made - x) ** 2, -1) + divergence)

    def train_step(self, x):
        with tf.GradientTape() as tape:
            loss = self.loss_of(x)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        self.total.update_state(loss)
        return {"loss": self.total.result()}

    def test_step(self, x):
        self.total.update_state(self.loss_of(x))
        return {"loss": self.total.result()}


class Samples(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch % 10 == 9:
            drawn = self.model.decoder(np.random.randn(8, 4).astype("float32"))
            np.save(f"samples_{epoch:03d}.npy", np.asarray(drawn))


windows = np.random.randn(4000, 20).cumsum(1).astype("float32") / 4
model = VariationalAutoencoder()
model.compile(optimizer=keras.optimizers.Adam(1e-3))
data = tf.data.Dataset.from_tensor_slices(windows).shuffle(4000).batch(128, drop_remainder=True)
model.fit(data.skip(5), validation_data=data.take(5), epochs=100, callbacks=[Samples()], verbose=2)
made, mean, spread = model.predict(windows[:256])
print("error", float(((made - windows[:256]) ** 2).mean()), mean.shape, spread.shape)
