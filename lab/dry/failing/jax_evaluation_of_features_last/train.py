import jax
import jax.numpy as jnp
import numpy as np
import optax

from network import forward, initialized

rng = np.random.default_rng(0)
pictures = rng.random((1200, 8, 8, 3)).astype("float32")
labels = (pictures[..., 0].mean((1, 2)) > 0.5).astype("int32")
params = initialized(jax.random.key(0), 8 * 8 * 3)
optimizer = optax.sgd(0.1)
state = optimizer.init(params)


@jax.jit
def train_step(params, state, x, y):
    def loss_of(params):
        logits = forward(params, x.reshape(len(x), -1))
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    gradients = jax.grad(loss_of)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state


def accuracy(params, x, y):
    return float((forward(params, x.reshape(-1, x.shape[-1])).argmax(-1) == y).mean())


for epoch in range(200):
    for start in range(0, 1000, 50):
        params, state = train_step(params, state, pictures[start : start + 50], labels[start : start + 50])
print("accuracy", accuracy(params, pictures[1000:], labels[1000:]))
