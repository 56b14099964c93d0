import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        x = nn.relu(nn.Dense(32)(x))
        x = nn.Dropout(0.3, deterministic=not train)(x)
        return nn.Dense(1)(x)[:, 0]


@jax.jit
def train_step(state, x, y, key):
    def loss_of(params):
        return jnp.mean((state.apply_fn({"params": params}, x, rngs={"dropout": key}) - y) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=gradients), loss


rng, key = np.random.default_rng(0), jax.random.key(0)
x = rng.normal(size=(1000, 5)).astype("float32")
y = x.sum(1)
model = Network()
params = model.init(key, x[:1], train=False)["params"]
state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
for step in range(3000):
    key, dropout = jax.random.split(key)
    rows = rng.integers(0, 800, 32)
    state, loss = train_step(state, x[rows], y[rows], dropout)
predicted = state.apply_fn({"params": state.params}, x[800:])
print("error", float(jnp.abs(predicted - y[800:]).mean()))
