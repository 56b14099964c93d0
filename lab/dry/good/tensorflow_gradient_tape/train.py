import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=60)
parser.add_argument("--save-every", type=int, default=20)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)

features = tf.random.normal((2000, 12))
targets = tf.cast(tf.reduce_sum(features[:, :4], 1) > 0, tf.int32)
data = tf.data.Dataset.from_tensor_slices((features, targets))
train = data.take(1600).shuffle(1600).batch(64).prefetch(tf.data.AUTOTUNE)
test = data.skip(1600).batch(64)

model = tf.keras.Sequential([tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(2)])
optimizer = tf.keras.optimizers.Adam(1e-3)
criterion = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
epoch = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch)
manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=3)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = criterion(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


if args.resume and manager.latest_checkpoint:
    checkpoint.restore(manager.latest_checkpoint)
while epoch < args.epochs:
    mean = tf.keras.metrics.Mean()
    for x, y in train:
        mean.update_state(train_step(x, y))
    epoch.assign_add(1)
    if int(epoch) % args.save_every == 0:
        manager.save()
    accuracy.reset_state()
    for x, y in test:
        accuracy.update_state(y, model(x, training=False))
    print(f"epoch {int(epoch)} loss {mean.result():.4f} accuracy {accuracy.result():.3f}")
model.save_weights("final.weights.h5")
