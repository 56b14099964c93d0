import tensorflow as tf

series = tf.math.cumsum(tf.random.normal((20000,)))


def windows(part, length):
    data = tf.data.Dataset.from_tensor_slices(part).batch(length + 1, drop_remainder=True)
    return data.map(lambda window: (window[:-1], window[-1])).batch(16)


train, validation = windows(series[:16000], 24), windows(series[16000:], 28)
model = tf.keras.Sequential([tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()
error = tf.keras.losses.MeanSquaredError()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = error(y[:, None], model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(100):
    for x, y in train:
        loss = train_step(x, y)
    print(epoch, float(loss))
total = 0.0
for x, y in validation:
    total += float(error(y[:, None], model(x, training=False)))
print("validation", total)
