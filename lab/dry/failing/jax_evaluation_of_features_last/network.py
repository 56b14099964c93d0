import jax
import jax.numpy as jnp


def initialized(key, width, hidden=32, classes=2):
    first, last = jax.random.split(key)
    return {
        "first": jax.random.normal(first, (width, hidden)) * 0.05,
        "last": jax.random.normal(last, (hidden, classes)) * 0.05,
    }


def forward(params, x):
    hidden = jax.nn.relu(jnp.dot(x, params["first"]))
    return jnp.dot(hidden, params["last"])
