import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()).reshape(4), ("data",))
by_rows = NamedSharding(mesh, PartitionSpec("data"))
everywhere = NamedSharding(mesh, PartitionSpec())


class Regressor(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(8, 64, rngs=rngs)
        self.last = nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.gelu(self.first(x)))[:, 0]


model = Regressor(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, gradients = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
    optimizer.update(model, gradients)
    return loss


nnx.update(model, jax.device_put(nnx.state(model), everywhere))
nnx.update(optimizer, jax.device_put(nnx.state(optimizer), everywhere))
rng = np.random.default_rng(0)
for step in range(2000):
    x = rng.normal(size=(256, 8)).astype("float32")
    x, y = jax.device_put((x, np.sin(x).sum(1)), by_rows)
    loss = train_step(model, optimizer, x, y)
    if step % 500 == 0:
        print(step, float(loss))
leaves = {f"leaf_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(nnx.state(model)))}
np.savez("model.npz", **leaves)
