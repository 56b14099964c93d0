from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization
from flax.training import train_state


class TrainState(train_state.TrainState):
    batch_stats: Any


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        for width in (16, 32):
            x = nn.Conv(width, (3, 3), strides=(2, 2))(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        x = nn.Dropout(0.2, deterministic=not train)(x.mean((1, 2)))
        return nn.Dense(4)(x)


@jax.jit
def train_step(state, batch, key):
    def loss_of(params):
        logits, updated = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats},
            batch["image"], True, mutable=["batch_stats"], rngs={"dropout": key},
        )
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
        return loss, updated

    (loss, updated), gradients = jax.value_and_grad(loss_of, has_aux=True)(state.params)
    state = state.apply_gradients(grads=gradients, batch_stats=updated["batch_stats"])
    return state, loss


@jax.jit
def correct(state, batch):
    variables = {"params": state.params, "batch_stats": state.batch_stats}
    logits = state.apply_fn(variables, batch["image"], False)
    return (logits.argmax(-1) == batch["label"]).sum()


def batches(images, labels, size):
    for start in range(0, len(images), size):
        yield {"image": images[start : start + size], "label": labels[start : start + size]}


def main():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 1000)
    images = rng.normal(labels[:, None, None, None] / 4, 1, (1000, 16, 16, 3)).astype("float32")
    model, key = Network(), jax.random.key(0)
    variables = model.init(key, jnp.zeros((1, 16, 16, 3)), False)
    state = TrainState.create(
        apply_fn=model.apply, params=variables["params"], tx=optax.sgd(0.05, momentum=0.9),
        batch_stats=variables["batch_stats"],
    )
    best = 0.0
    for epoch in range(30):
        for batch in batches(images[:800], labels[:800], 64):
            key, dropout = jax.random.split(key)
            state, loss = train_step(state, batch, dropout)
        right = sum(correct(state, batch) for batch in batches(images[800:], labels[800:], 64))
        if right > best:
            best = right
            with open("best.msgpack", "wb") as file:
                file.write(serialization.to_bytes(state))
        print(f"epoch {epoch} loss {loss:.3f} accuracy {right / 200:.3f}")
    with open("best.msgpack", "rb") as file:
        state = serialization.from_bytes(state, file.read())
    print("restored", int(state.step))


main()
