import ctypes

import numpy as np

sampler = ctypes.CDLL("./sampler.so")
sampler.draw.argtypes = [ctypes.POINTER(ctypes.c_double), ctypes.c_int, ctypes.c_double]

rng = np.random.default_rng(0)
x = rng.normal(size=(400, 3))
y = x @ [1.0, -1.0, 2.0] + rng.normal(size=400) * 0.1
w, importance = np.zeros(3), np.ones(400)
pointer = importance.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
for epoch in range(20):
    for _ in range(100):
        row = sampler.draw(pointer, len(importance), rng.random())
        error = x[row] @ w - y[row]
        w -= 0.05 * error * x[row]
        importance[row] = abs(error) + 1e-3
    print(f"epoch {epoch}: w = {w.round(3)}", flush=True)
