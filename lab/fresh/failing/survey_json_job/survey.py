"""Satisfaction from answers, and how well it is told in each group of cities."""
import argparse
import csv
import json
import os

import jax
import jax.numpy as jnp
import numpy as np
import optax

QUESTIONS = ("q1", "q2", "q3", "q4")


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    x = np.array([[float(r[q]) for q in QUESTIONS] + [float(r["age"]) / 100] for r in rows], np.float32)
    y = np.array([float(r["satisfied"]) for r in rows], np.float32)
    return rows, x, y


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.random.normal(k, (a, b)) * a ** -0.5, "b": jnp.zeros(b)}
            for k, a, b in zip(keys, sizes, sizes[1:])]


def forward(params, x):
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return (x @ params[-1]["w"] + params[-1]["b"])[:, 0]


def objective(params, x, y):
    return optax.sigmoid_binary_cross_entropy(forward(params, x), y).mean()


def group_of(path):
    """City by city, the name of its group."""
    with open(path, encoding="utf-8") as f:
        groups = json.load(f)
    return {city: name for name, cities in groups.items() for city in cities}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("answers")
    p.add_argument("--groups")
    p.add_argument("--out", required=True)
    p.add_argument("--steps", type=int, default=20000)
    args = p.parse_args()
    rows, x, y = read(args.answers)
    optimizer = optax.adamw(1e-3)
    params = init(jax.random.key(0), (x.shape[1], 32, 32, 1))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(objective)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    rng = np.random.default_rng(0)
    for i in range(args.steps):
        part = rng.integers(len(x), size=64)
        params, state, loss = step(params, state, x[part], y[part])
        if i % 1000 == 0:
            print(i, float(loss), flush=True)
    right = (np.asarray(forward(params, x)) > 0) == (y > 0.5)
    os.makedirs(args.out, exist_ok=True)
    report = {"all": float(right.mean())}
    if args.groups:
        city_group = group_of(args.groups)
        for name in sorted(set(city_group.values())):
            members = np.array([city_group.get(r["city"]) == name for r in rows])
            if members.any():
                report[name] = float(right[members].mean())
    with open(os.path.join(args.out, "report.json"), "w") as f:
        json.dump(report, f)


if __name__ == "__main__":
    main()
