"""Three spirals, told apart by a network whose activation has a hand-written backward pass.

Should reach: val accuracy of at least 0.95.
"""

import math

import torch
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)


class SquarePlus(torch.autograd.Function):
    """(x + sqrt(x^2 + 1)) / 2"""

    @staticmethod
    def forward(ctx, x):
        root = torch.sqrt(x * x + 1)
        ctx.save_for_backward(x, root)
        return (x + root) / 2

    @staticmethod
    def backward(ctx, grad):
        x, root = ctx.saved_tensors
        return grad * (1 + x / root) / 2


class Activation(nn.Module):
    def forward(self, x):
        return SquarePlus.apply(x)


def spirals(n):
    arm = torch.randint(0, 3, (n,))
    t = torch.rand(n) ** 0.5
    angle = 4.5 * t + arm * 2 * math.pi / 3 + 0.1 * torch.randn(n)
    return 2 * torch.stack([t * torch.cos(angle), t * torch.sin(angle)], 1), arm


x_train, y_train = spirals(1500)
x_val, y_val = spirals(500)
model = nn.Sequential(
    nn.Linear(2, 48), Activation(), nn.Linear(48, 48), Activation(), nn.Linear(48, 48), Activation(), nn.Linear(48, 3)
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_function = nn.CrossEntropyLoss()
for epoch in range(40):
    model.train()
    for index in torch.randperm(len(x_train)).chunk(20):
        optimizer.zero_grad()
        loss = loss_function(model(x_train[index]), y_train[index])
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            train_acc = (model(x_train).argmax(1) == y_train).float().mean()
            val_acc = (model(x_val).argmax(1) == y_val).float().mean()
        print(f"epoch {epoch + 1}: train accuracy {train_acc:.3f}, val accuracy {val_acc:.3f}")
