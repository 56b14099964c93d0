import jax
import jax.numpy as jnp
import optax

PATCH = 7
SIZE = 32
WIDTH = 24


def init(key):
    a, b, c = jax.random.split(key, 3)
    patches = (SIZE // PATCH) ** 2
    return {
        "embed": jax.random.normal(a, (PATCH * PATCH * 3, WIDTH)) * 0.02,
        "position": jax.random.normal(b, (patches, WIDTH)) * 0.02,
        "head": jax.random.normal(c, (WIDTH, 10)) * 0.02,
    }


def patchify(images):
    n = SIZE // PATCH
    images = images.reshape(images.shape[0], n, PATCH, n, PATCH, 3)
    return images.transpose(0, 1, 3, 2, 4, 5).reshape(images.shape[0], n * n, -1)


def forward(params, images):
    tokens = patchify(images) @ params["embed"] + params["position"]
    scores = tokens @ tokens.transpose(0, 2, 1) / WIDTH**0.5
    tokens = tokens + jax.nn.softmax(scores) @ tokens
    return tokens.mean(1) @ params["head"]


def loss_fn(params, images, labels):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, images), labels).mean()


def main():
    key = jax.random.PRNGKey(0)
    params = init(key)
    optimizer = optax.adamw(1e-3)
    state = optimizer.init(params)

    @jax.jit
    def update(params, state, images, labels):
        loss, grads = jax.value_and_grad(loss_fn)(params, images, labels)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    for step in range(100):
        key, image_key, label_key = jax.random.split(key, 3)
        images = jax.random.normal(image_key, (16, SIZE, SIZE, 3))
        labels = jax.random.randint(label_key, (16,), 0, 10)
        params, state, loss = update(params, state, images, labels)
        if step % 20 == 0:
            print(step, float(loss))


if __name__ == "__main__":
    main()
