import csv
import io
import numpy as np
import tensorflow as tf

TABLE = """age,income,city,bought
31,2400,Oslo,1
45,3100,Turin,0
27,1900,Lyon,0
52,4200,Porto,1
"""

rows = list(csv.reader(io.StringIO(TABLE)))[1:]
features = np.array([r[:3] for r in rows])
target = np.array([int(r[3]) for r in rows])
print("features", features.shape, features.dtype)

net = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
net.compile(optimizer="sgd", loss="mse")
net.fit(features, target, epochs=3, verbose=2)
