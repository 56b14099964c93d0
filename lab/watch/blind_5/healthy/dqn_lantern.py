"""DQN with a replay memory and a lagging target network: fetch the lantern, then reach the exit."""

import random
from collections import deque

import numpy as np
import torch
from torch import nn

SEED = 12
random.seed(SEED)
torch.manual_seed(SEED)
SIZE = 4
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class Cave:
    def reset(self):
        self.state = np.array([random.randrange(SIZE), random.randrange(SIZE), 0], dtype=np.float32)
        self.steps = 0
        return self.state

    def step(self, action):
        self.state[:2] = np.clip(self.state[:2] + MOVES[action], 0, SIZE - 1)
        reward = -0.02
        if self.state[2] == 0 and tuple(self.state[:2]) == (0, SIZE - 1):
            self.state[2], reward = 1, 0.5
        done = self.state[2] == 1 and tuple(self.state[:2]) == (SIZE - 1, 0)
        self.steps += 1
        return self.state, 1.0 if done else reward, bool(done), self.steps >= 40


def network():
    return nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))


def scaled(states):
    return torch.from_numpy(np.stack(states)) / torch.tensor([SIZE - 1.0, SIZE - 1.0, 1.0]) - 0.5


online, target = network(), network()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
memory, cave = deque(maxlen=4000), Cave()
state = cave.reset().copy()
for step in range(1, 5001):
    epsilon = max(0.1, 1 - step / 2500)
    if random.random() < epsilon:
        action = random.randrange(4)
    else:
        with torch.no_grad():
            action = int(online(scaled([state])).argmax())
    seen, reward, done, late = cave.step(action)
    next_state = seen.copy()
    memory.append((state, action, reward, next_state, done))
    state = cave.reset().copy() if done or late else next_state
    if len(memory) >= 200 and step % 2 == 0:
        states, actions, rewards, next_states, ends = zip(*random.sample(memory, 64), strict=True)
        value = online(scaled(states)).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
        with torch.no_grad():
            future = target(scaled(next_states)).max(1).values * (1 - torch.tensor(ends).float())
        loss = nn.functional.smooth_l1_loss(value, torch.tensor(rewards) + 0.95 * future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if step % 200 == 0:
        target.load_state_dict(online.state_dict())
    if step % 1000 == 0:
        print(f"step {step} loss {loss.item():.4f}")

returns = []
for _ in range(40):
    state, over, total = cave.reset(), False, 0.0
    while not over:
        with torch.no_grad():
            action = int(online(scaled([state])).argmax())
        state, reward, done, late = cave.step(action)
        total, over = total + reward, done or late
    returns.append(total)
print(f"mean return {np.mean(returns):.4f}")
