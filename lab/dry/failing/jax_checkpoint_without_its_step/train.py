import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)
x = rng.normal(size=(2000, 6)).astype("float32")
y = x @ rng.normal(size=6).astype("float32")
params = {"w": jnp.zeros(6), "b": jnp.zeros(())}
optimizer = optax.adam(1e-2)
state = optimizer.init(params)


def loss_of(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


@jax.jit
def train_step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


best = float("inf")
for step in range(4000):
    rows = rng.integers(0, 1600, 32)
    params, state, loss = train_step(params, state, x[rows], y[rows])
    if step % 200 == 0 and (error := float(loss_of(params, x[1600:], y[1600:]))) < best:
        best = error
        with open("best.pkl", "wb") as file:
            pickle.dump({"params": params, "error": error}, file)
with open("best.pkl", "rb") as file:
    kept = pickle.load(file)
print(f"best at step {kept['step']}: {kept['error']:.5f}")
