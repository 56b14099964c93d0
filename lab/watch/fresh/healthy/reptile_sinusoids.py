"""Meta-learning of sinusoids by Reptile: the loss of each new task starts high; what counts is how fast it falls.

Should reach: error after ten steps below 0.8; from an untrained start it is about 2.0.
"""
import copy

import torch
from torch import nn

torch.manual_seed(23)
torch.set_num_threads(1)


def task():
    height, phase = 0.5 + 3 * torch.rand(1), 3.14 * torch.rand(1)

    def sample(count):
        x = torch.rand(count, 1) * 10 - 5
        return x / 5, height * torch.sin(x + phase)

    return sample


def adapt(model, x, y, steps):
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=0.02)
    for _ in range(steps):
        loss = nn.functional.mse_loss(learner(x), y)
        inner.zero_grad()
        loss.backward()
        inner.step()
    return learner, loss.item()


def evaluate(model):
    generator_state = torch.get_rng_state()
    torch.manual_seed(0)
    errors = []
    for _ in range(40):
        sample = task()
        learner, _ = adapt(model, *sample(10), steps=10)
        x, y = sample(100)
        with torch.no_grad():
            errors.append(nn.functional.mse_loss(learner(x), y).item())
    torch.set_rng_state(generator_state)
    return sum(errors) / len(errors)


model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
TASKS = 3000
print(f"untrained: error after ten steps {evaluate(model):.3f}")
for number in range(TASKS):
    rate = 0.3 * (1 - number / TASKS)
    sample = task()
    learner, loss = adapt(model, *sample(20), steps=6)
    with torch.no_grad():
        for slow, fast in zip(model.parameters(), learner.parameters()):
            slow += rate * (fast - slow)
    if (number + 1) % 500 == 0:
        print(f"task {number + 1}: loss {loss:.3f} error after ten steps {evaluate(model):.3f}")
