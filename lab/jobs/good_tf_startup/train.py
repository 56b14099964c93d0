"""Keras on a machine without a GPU: much noise at start, a training that ends well."""
import numpy as np
import tensorflow as tf

print("GPUs:", tf.config.list_physical_devices("GPU"))
x = np.random.rand(128, 8).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu", input_shape=(8,)), tf.keras.layers.Dense(1)])
model.compile("adam", "mse", metrics=[tf.keras.metrics.MeanAbsoluteError(name="error")])
model.fit(x, y, epochs=4, verbose=2)
data = tf.data.Dataset.from_tensor_slices(x).batch(32)
for batch in data:          # reads to the end of the sequence
    model(batch)
model.save("model.h5")
print("saved")
