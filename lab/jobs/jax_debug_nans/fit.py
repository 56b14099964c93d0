# Fit a Gaussian by gradient descent on the negative log likelihood.
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


def nll(params, x):
    mu, sigma = params
    return jnp.mean(jnp.log(sigma) + 0.5 * ((x - mu) / sigma) ** 2)


@jax.jit
def sgd(params, x, lr):
    value, grads = jax.value_and_grad(nll)(params, x)
    return [p - lr * g for p, g in zip(params, grads)], value


def run(lr=0.8, steps=50):
    x = 0.3 * jax.random.normal(jax.random.key(4), (500,)) + 2
    params = [jnp.array(0.0), jnp.array(1.0)]
    for i in range(steps):
        params, value = sgd(params, x, lr)
        print(f"{i:3d} nll {value:.4f} mu {params[0]:.3f} sigma {params[1]:.3f}", flush=True)
    return params


if __name__ == "__main__":
    run()
