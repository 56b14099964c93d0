"""REINFORCE until the pole is balanced; gives up after 600 episodes."""
import math
import sys

import numpy as np
import torch
from torch import nn


class Pole:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        self.steps = 0
        return self.state.astype(np.float32)

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action else -10.0
        pull = (force + 0.05 * spin**2 * math.sin(angle)) / 1.1
        turn = (9.8 * math.sin(angle) - math.cos(angle) * pull) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        push = pull - 0.05 * turn * math.cos(angle) / 1.1
        self.state = np.array([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn])
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.state.astype(np.float32), 1.0, fallen or self.steps >= 100


def play(env, policy, optimizer):
    state, done, logs, rewards = env.reset(), False, [], []
    while not done:
        choice = torch.distributions.Categorical(logits=policy(torch.from_numpy(state)))
        action = choice.sample()
        state, reward, done = env.step(action.item())
        logs.append(choice.log_prob(action))
        rewards.append(reward)
    returns, running = [], 0.0
    for reward in reversed(rewards):
        running = reward + 0.99 * running
        returns.append(running)
    goal = torch.tensor(returns[::-1])
    goal = (goal - goal.mean()) / (goal.std() + 1e-6)
    loss = -(torch.stack(logs) * goal).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return len(rewards)


def main():
    torch.manual_seed(0)
    env = Pole(np.random.default_rng(0))
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    lengths = []
    for episode in range(600):
        lengths.append(play(env, policy, optimizer))
        if len(lengths) >= 20 and np.mean(lengths[-20:]) > 60:
            print("solved after", episode)
            break
    else:
        sys.exit("the pole was not balanced")
    assert max(lengths) >= 60, lengths
    torch.save(policy.state_dict(), "policy.pt")


main()
