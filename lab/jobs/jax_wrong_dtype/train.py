import jax
import jax.numpy as jnp
from functools import partial

def embed(table, ids):
    return table[ids]

def loss(table, ids):
    return jnp.mean(embed(table, ids) ** 2)

@jax.jit
def train_step(table, ids):
    l, g = jax.value_and_grad(loss)(table, ids)
    return table - 0.1 * g, l

@partial(jax.jit, static_argnames="n")
def sample_ids(key, n):
    return jnp.floor(jax.random.uniform(key, (n,)) * 100)

table = jax.random.normal(jax.random.key(0), (100, 8))
for step, key in enumerate(jax.random.split(jax.random.key(1), 5)):
    table, l = train_step(table, sample_ids(key, n=32))
    print("step", step, "loss", l)
