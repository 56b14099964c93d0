import logging
import jax
import jax.numpy as jnp

logging.basicConfig(level=logging.DEBUG, format="%(levelname)s:%(name)s:%(message)s")
logging.getLogger("jax._src").setLevel(logging.INFO)
try:
    print(jax.devices("gpu"))
except RuntimeError as error:
    print("no GPU:", error)
w = jnp.zeros(3)
x = jax.random.normal(jax.random.key(0), (50, 3))
grad = jax.jit(jax.value_and_grad(lambda w: jnp.mean((x @ w - x[:, 0]) ** 2)))
for i in range(30):
    error, g = grad(w)
    w -= 0.1 * g
    if i % 10 == 0:
        print(f"iteration {i} error {error:.5f}")
try:
    jax.jit(lambda v: v if v > 0 else -v)(1.0)
except jax.errors.ConcretizationTypeError as e:
    print("as expected, jit refuses a Python branch:", type(e).__name__)
print("error after training:", float(grad(w)[0]))
