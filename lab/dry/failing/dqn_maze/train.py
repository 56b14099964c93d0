import random
from collections import deque

import numpy as np
import torch
from torch import nn

EPISODES = 120
BATCH = 32


class Maze:
    """Walk from the left end of a corridor to the right one."""

    def __init__(self, length=7):
        self.length = length

    def reset(self):
        self.at, self.age = 0, 0
        return self.observe()

    def observe(self):
        state = np.zeros(self.length, dtype=np.float32)
        state[self.at] = 1
        return state

    def step(self, action):
        self.at = max(0, self.at + (1 if action == 1 else -1))
        self.age += 1
        done = self.at == self.length - 1
        return self.observe(), 1.0 if done else -0.01, done or self.age >= 60


def main():
    random.seed(0)
    torch.manual_seed(0)
    env = Maze()
    online = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 2))
    target = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 2))
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
    buffer = deque(maxlen=2000)
    epsilons = np.linspace(1.0, 0.05, EPISODES // 2)
    returns = []
    for episode in range(EPISODES):
        state, done, total = env.reset(), False, 0.0
        epsilon = epsilons[episode]
        while not done:
            if random.random() < epsilon:
                action = random.randrange(2)
            else:
                action = online(torch.from_numpy(state)).argmax().item()
            following, reward, done = env.step(action)
            buffer.append((state, action, reward, following, done))
            state, total = following, total + reward
            if len(buffer) >= BATCH:
                s, a, r, n, d = zip(*random.sample(buffer, BATCH))
                s, n = torch.tensor(np.stack(s)), torch.tensor(np.stack(n))
                q = online(s).gather(1, torch.tensor(a)[:, None]).squeeze(1)
                with torch.no_grad():
                    goal = torch.tensor(r) + 0.98 * target(n).max(1).values * (1 - torch.tensor(d, dtype=torch.float32))
                loss = nn.functional.smooth_l1_loss(q, goal)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        returns.append(total)
        if episode % 10 == 0:
            target.load_state_dict(online.state_dict())
            print(episode, f"epsilon {epsilon:.2f} return {np.mean(returns[-10:]):.2f}")


main()
