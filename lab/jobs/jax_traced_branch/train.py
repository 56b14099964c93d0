import logging

import jax
import jax.numpy as jnp

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")


def clip(grad, limit=1.0):
    norm = jnp.sqrt(jnp.sum(grad**2))
    if norm > limit:
        grad = grad * (limit / norm)
    return grad


@jax.jit
def step(w, x, y):
    loss, grad = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - 0.1 * clip(grad), loss


w = jnp.zeros(4)
x = jax.random.normal(jax.random.key(0), (32, 4))
y = x @ jnp.array([1.0, -2.0, 0.5, 3.0])
logging.info("devices: %s", jax.devices())
for i in range(10):
    w, loss = step(w, x, y)
    logging.info("step %d loss %.4f", i, loss)
