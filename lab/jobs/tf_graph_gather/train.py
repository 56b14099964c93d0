"""Word vectors with tf.data and a custom training loop in graph mode."""
import numpy as np
import tensorflow as tf

VOCABULARY = 200
vectors = tf.Variable(tf.random.normal((VOCABULARY, 16)), name="vectors")
optimizer = tf.keras.optimizers.SGD(0.1)


def corpus():
    rng = np.random.default_rng(5)
    for batch in range(12):
        ids = rng.integers(0, VOCABULARY, 32)
        if batch == 7:
            ids[3] = 214                # a word of the second corpus
        yield ids[:16], ids[16:]


@tf.function
def train_step(center, context):
    with tf.GradientTape() as tape:
        scores = tf.reduce_sum(tf.gather(vectors, center) * tf.gather(vectors, context), axis=1)
        loss = -tf.reduce_mean(tf.math.log_sigmoid(scores))
    grad = tape.gradient(loss, vectors)
    optimizer.apply_gradients([(grad, vectors)])
    return loss


signature = (tf.TensorSpec((16,), tf.int64), tf.TensorSpec((16,), tf.int64))
dataset = tf.data.Dataset.from_generator(corpus, output_signature=signature).prefetch(2)
for step, (center, context) in enumerate(dataset):
    print("step", step, "loss", float(train_step(center, context)), flush=True)
