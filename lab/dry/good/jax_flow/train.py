import pickle
from functools import partial

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn


class Coupling(nn.Module):
    flip: bool

    @nn.compact
    def __call__(self, x):
        a, b = jnp.split(x, 2, axis=-1)
        a, b = (b, a) if self.flip else (a, b)
        hidden = nn.relu(nn.Dense(32)(a))
        scale, shift = jnp.split(nn.Dense(2 * b.shape[-1])(hidden), 2, axis=-1)
        scale = jnp.tanh(scale)
        b = b * jnp.exp(scale) + shift
        a, b = (b, a) if self.flip else (a, b)
        return jnp.concatenate([a, b], -1), scale.sum(-1)


class Flow(nn.Module):
    layers: int = 4

    @nn.compact
    def __call__(self, x):
        total = jnp.zeros(x.shape[0])
        for k in range(self.layers):
            x, log_det = Coupling(k % 2 == 1)(x)
            total += log_det
        return x, total


def loss_fn(params, flow, x):
    z, log_det = flow.apply(params, x)
    return (0.5 * (z**2).sum(-1) - log_det).mean()


@partial(jax.jit, static_argnums=(2, 3))
def step(params, state, flow, optimizer, x):
    loss, grads = jax.value_and_grad(loss_fn)(params, flow, x)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def main():
    key = jax.random.PRNGKey(0)
    flow, optimizer = Flow(), optax.adam(1e-3)
    params = flow.init(key, jnp.zeros((1, 4)))
    state = optimizer.init(params)
    first = None
    for k in range(200):
        key, data = jax.random.split(key)
        x = jax.random.normal(data, (128, 4)) * jnp.array([1.0, 2.0, 0.5, 3.0])
        params, state, loss = step(params, state, flow, optimizer, x)
        first = float(loss) if first is None else first
    print("from", first, "to", float(loss))
    with open("flow.pkl", "wb") as file:
        pickle.dump(jax.device_get(params), file)


if __name__ == "__main__":
    main()
