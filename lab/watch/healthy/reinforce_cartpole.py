"""REINFORCE balances a pole on a cart. The return goes up and down from one update to the next, but grows.

Should reach: mean return of at least 150 of 200 over the last twenty updates (at the start: about 20).
"""

import math

import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
CARTS, LIMIT, UPDATES, GAMMA = 16, 200, 40, 0.99


def reset(count):
    return 0.1 * torch.rand(count, 4) - 0.05


def simulate(state, action):
    """One step of the classical equations (gravity 9.8, cart 1 kg, pole 0.1 kg and 1 m, 0.02 s)."""
    x, speed, angle, spin = state.unbind(1)
    force = torch.where(action == 1, 10.0, -10.0)
    cos, sin = torch.cos(angle), torch.sin(angle)
    push = (force + 0.05 * spin**2 * sin) / 1.1
    spin_rate = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    acceleration = push - 0.05 * spin_rate * cos / 1.1
    state = torch.stack([x + 0.02 * speed, speed + 0.02 * acceleration, angle + 0.02 * spin, spin + 0.02 * spin_rate], 1)
    fallen = (state[:, 0].abs() > 2.4) | (state[:, 2].abs() > 12 * math.pi / 180)
    return state, fallen


policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
scale = torch.tensor([1.0, 1.0, 5.0, 1.0])
history = []

for update in range(1, UPDATES + 1):
    state, alive = reset(CARTS), torch.ones(CARTS)
    log_probabilities, rewards = [], []
    for _ in range(LIMIT):
        distribution = torch.distributions.Bernoulli(logits=policy(state * scale).squeeze(1))
        action = distribution.sample()
        log_probabilities.append(distribution.log_prob(action) * alive)
        rewards.append(alive.clone())
        state, fallen = simulate(state, action)
        alive = alive * (~fallen).float()
        if not alive.any():
            break

    returns, following = [], torch.zeros(CARTS)
    for reward in reversed(rewards):
        following = reward + GAMMA * following
        returns.insert(0, following)
    returns, played = torch.stack(returns), torch.stack(rewards)
    mean = (returns * played).sum() / played.sum()
    std = (((returns - mean) ** 2 * played).sum() / played.sum()).sqrt()
    loss = -(torch.stack(log_probabilities) * (returns - mean) / (std + 1e-6)).sum() / played.sum()

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(played.sum().item() / CARTS)
    if update % 5 == 0:
        recent = history[-20:]
        print(f"update {update:3d}  loss {loss.item():+.4f}  last {history[-1]:.1f}  mean return {sum(recent) / len(recent):.1f}")
