#!/usr/bin/env python3
import numpy as np
import torch
import torch.nn.functional as F

rng = np.random.default_rng(0)
X = torch.tensor(rng.normal(size=(400, 6)), dtype=torch.float32)
w_true = torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0, -1.0])
y = X @ w_true + 0.1 * torch.randn(400)

w = torch.zeros(6, requires_grad=True)
opt = torch.optim.LBFGS([w], max_iter=20)


def closure():
    opt.zero_grad()
    loss = F.mse_loss(X[:300] @ w, y[:300])
    loss.backward()
    return loss


for it in range(3):
    print("iteration", it, "train mse", float(opt.step(closure)))


def r2(prediction, target):
    residual = ((target - prediction) ** 2).sum()
    return 1 - residual / ((target - target.mean()) ** 2).sum()


print("--- evaluation on 100 held-out rows ---")
predictions = (X[300:] @ w).numpy()
print("R2 =", r2(predictions, y[300:].numpy()))
