import argparse
from collections import deque
from itertools import count

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class Grid:
    size = 4

    def reset(self):
        self.place = np.array([0, 0])
        return self._state()

    def step(self, action):
        moves = ((0, 1), (1, 0), (0, -1), (-1, 0))
        self.place = np.clip(self.place + moves[action], 0, self.size - 1)
        arrived = bool((self.place == self.size - 1).all())
        return self._state(), 1.0 if arrived else -0.02, arrived

    def _state(self):
        state = np.zeros(self.size**2, dtype=np.float32)
        state[self.place[0] * self.size + self.place[1]] = 1
        return state


parser = argparse.ArgumentParser()
parser.add_argument("--episodes", type=int, default=500)
parser.add_argument("--gamma", type=float, default=0.98)
args = parser.parse_args()
torch.manual_seed(0)
environment = Grid()
policy = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
lengths = deque(maxlen=20)
for episode in range(args.episodes):
    state, logs, rewards = environment.reset(), [], []
    for t in count(1):
        choice = Categorical(logits=policy(torch.from_numpy(state)))
        action = choice.sample()
        logs.append(choice.log_prob(action))
        state, reward, done = environment.step(action.item())
        rewards.append(reward)
        if done or t == 200:
            break
    lengths.append(t)
    returns, value = deque(), 0.0
    for reward in reversed(rewards):
        value = reward + args.gamma * value
        returns.appendleft(value)
    returns = torch.tensor(list(returns))
    returns = (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-6)
    loss = -(torch.stack(logs) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 10 == 0:
        print(f"episode {episode} length {np.mean(lengths):.1f}")
assert len(lengths) == min(20, args.episodes)
