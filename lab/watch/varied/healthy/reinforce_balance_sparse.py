"""A policy gradient balances a stick: returns of any size, a loss that says nothing, states fed with raw rewards."""

import math

import torch
from torch import nn

torch.manual_seed(7)
torch.set_num_threads(1)


class Stick:
    def reset(self):
        self.state, self.steps = torch.rand(4) * 0.1 - 0.05, 0
        return self.state.clone()

    def step(self, action):
        x, v, a, w = self.state.tolist()
        force = 10.0 if action else -10.0
        sine, cosine = math.sin(a), math.cos(a)
        push = (force + 0.05 * w * w * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        move = push - 0.05 * turn * cosine / 1.1
        self.state = torch.tensor([x + 0.02 * v, v + 0.02 * move, a + 0.02 * w, w + 0.02 * turn])
        self.steps += 1
        return self.state.clone(), abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21 or self.steps >= 100


policy = nn.Sequential(nn.Linear(4, 32), nn.Dropout(0.1), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
game, running = Stick(), 10.0
for episode in range(1, 101):
    state, kept, done = game.reset(), [], False
    while not done:
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        kept.append(choice.log_prob(action))
        state, done = game.step(action.item())
    returns, value = [], 0.0
    for _ in kept:
        value = 1.0 + 0.99 * value
        returns.insert(0, value)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    optimizer.zero_grad()
    loss = -(torch.stack(kept) * returns).sum()
    loss.backward()
    optimizer.step()
    running = 0.9 * running + 0.1 * len(kept)
    if episode % 20 == 0:
        print(f"episode {episode} running length {running:.1f}")
