import tensorflow as tf


class Scaler(tf.Module):
    """Scales its input by a learned factor."""

    @tf.function
    def __call__(self, x):
        factor = tf.Variable(1.0, name="factor")
        return factor * x


@tf.function
def train_step(model, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    return loss, tape.gradient(loss, model.trainable_variables)


model = Scaler()
data = tf.data.Dataset.from_tensor_slices((tf.random.normal((64,)), tf.random.normal((64,)))).batch(16)
for x, y in data:
    loss, grads = train_step(model, x, y)
    print("loss:", loss.numpy())
