"""A two-layer perceptron in plain JAX."""
import jax
import jax.numpy as jnp


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [
        {"w": jax.random.normal(k, (m, n)) * 0.1, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def forward(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss_fn(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)


@jax.jit
def update(params, x, y, lr=0.05):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), loss


def main():
    params = init(jax.random.key(0), [8, 32, 1])
    key = jax.random.key(1)
    for step in range(20):
        key, sub = jax.random.split(key)
        x = jax.random.normal(sub, (64, 8 if step < 10 else 10))   # two columns were added to the table
        y = x.sum(axis=1, keepdims=True)
        params, loss = update(params, x, y)
        if step % 5 == 0:
            print(f"step {step} loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
