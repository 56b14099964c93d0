import jax
import jax.numpy as jnp


@jax.jit
def scores(x):
    return jax.nn.softmax(x @ x.T, axis=-1).sum()


for length in (1_000, 10_000, 400_000):
    x = jnp.ones((length, 64), dtype=jnp.float32)
    print(f"length {length} score {float(jax.grad(scores)(x).sum()):.4f}", flush=True)
