import argparse
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=5000)
parser.add_argument("--resume", metavar="FILE")
args = parser.parse_args()


def initialized(key, sizes=(10, 32, 3)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (m, n)) / np.sqrt(m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def forward(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_of(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, x), y).mean()


params = initialized(jax.random.key(0))
schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 200, args.steps)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
state, begin = optimizer.init(params), 0
if args.resume:
    with open(args.resume, "rb") as file:
        kept = pickle.load(file)
    params, state, begin = kept["params"], kept["state"], kept["step"] + 1


@jax.jit
def train_step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


rng = np.random.default_rng(0)
x = rng.normal(size=(4000, 10)).astype("float32")
y = x[:, :3].argmax(1)
for step in range(begin, args.steps):
    rows = rng.integers(0, 3200, 64)
    params, state, loss = train_step(params, state, x[rows], y[rows])
    if (step + 1) % 1000 == 0:
        with open("checkpoint.pkl", "wb") as file:
            pickle.dump({"params": params, "state": state, "step": step}, file)
        print(f"step {step + 1} loss {loss:.4f}")
predicted = jax.jit(forward)(params, x[3200:]).argmax(1)
print("accuracy", float((predicted == y[3200:]).mean()))
