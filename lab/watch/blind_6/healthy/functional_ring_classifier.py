"""Training without modules: parameters are lists of tensors, and a function takes each step."""
import torch
from torch.func import grad_and_value

SEED = 67
torch.manual_seed(SEED)


def rings(count):
    label = torch.randint(4, (count,))
    radius = label + 1 + 0.18 * torch.randn(count)
    angle = torch.rand(count) * 6.2832
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1) / 2, label


def initialize(sizes):
    return [
        (torch.randn(inside, outside) * (2 / inside) ** 0.5, torch.zeros(outside))
        for inside, outside in zip(sizes, sizes[1:])
    ]


def predict(params, x):
    for weight, bias in params[:-1]:
        x = torch.relu(x @ weight + bias)
    weight, bias = params[-1]
    return x @ weight + bias


def objective(params, x, y):
    return torch.nn.functional.cross_entropy(predict(params, x), y)


def momentum_step(params, velocity, grads, lr, momentum=0.9):
    new_params, new_velocity = [], []
    for layer, speeds, slopes in zip(params, velocity, grads):
        speeds = tuple(momentum * speed + slope for speed, slope in zip(speeds, slopes))
        layer = tuple(value - lr * speed for value, speed in zip(layer, speeds))
        new_params.append(layer)
        new_velocity.append(speeds)
    return new_params, new_velocity


x, y = rings(2000)
test_x, test_y = rings(800)
params = initialize([2, 64, 64, 64, 4])
velocity = [tuple(torch.zeros_like(value) for value in layer) for layer in params]
slope_of = grad_and_value(objective)
for epoch in range(16):
    total = 0.0
    for index in torch.randperm(len(x)).split(25):
        grads, loss = slope_of(params, x[index], y[index])
        params, velocity = momentum_step(params, velocity, grads, lr=0.02)
        total += loss.item() * len(index)
    accuracy = (predict(params, test_x).argmax(1) == test_y).float().mean()
    print(f"epoch {epoch + 1}: loss {total / len(x):.4f}, test accuracy {accuracy:.4f}")
