import json
import statistics

import numpy as np
import torch
from torch import nn

TOTAL, START, BATCH, LOG = 1500, 300, 64, 250


class Buffer:
    def __init__(self, size):
        self.s, self.a, self.r = np.zeros((size, 3), np.float32), np.zeros((size, 1), np.float32), np.zeros(size, np.float32)
        self.count = 0

    def add(self, s, a, r):
        at = self.count % len(self.r)
        self.s[at], self.a[at], self.r[at] = s, a, r
        self.count += 1

    def sample(self, rng):
        if self.count < BATCH:
            raise ValueError("too few transitions")
        rows = rng.integers(0, min(self.count, len(self.r)), BATCH)
        return torch.from_numpy(self.s[rows]), torch.from_numpy(self.a[rows]), torch.from_numpy(self.r[rows])


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    actor = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh())
    critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizers = torch.optim.Adam(actor.parameters(), 1e-3), torch.optim.Adam(critic.parameters(), 1e-3)
    buffer, losses, updates = Buffer(1000), [], 0
    state = rng.standard_normal(3).astype(np.float32)
    for step in range(1, TOTAL + 1):
        if step < START:
            action = rng.uniform(-1, 1, 1).astype(np.float32)
        else:
            with torch.no_grad():
                action = actor(torch.from_numpy(state)).numpy() + 0.1 * rng.standard_normal(1).astype(np.float32)
        reward = -float((state[0] - action[0]) ** 2)
        buffer.add(state, action, reward)
        state = rng.standard_normal(3).astype(np.float32)
        if step >= START:
            s, a, r = buffer.sample(rng)
            loss = nn.functional.mse_loss(critic(torch.cat([s, a], 1)).squeeze(1), r)
            optimizers[1].zero_grad()
            loss.backward()
            optimizers[1].step()
            losses.append(loss.item())
            updates += 1
            if updates % 2 == 0:
                gain = critic(torch.cat([s, actor(s)], 1)).mean()
                optimizers[0].zero_grad()
                (-gain).backward()
                optimizers[0].step()
        if step >= START and step % LOG == 0:
            print(step, statistics.fmean(losses[-LOG:]))
    assert updates == TOTAL - START + 1
    with open("summary.json", "w") as file:
        json.dump({"first": losses[0], "last": losses[-1], "mean": statistics.mean(losses)}, file)


if __name__ == "__main__":
    main()
