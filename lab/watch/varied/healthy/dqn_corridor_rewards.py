"""Deep Q-learning in a corridor with rewards up to 100: the network is given positions, and its targets grow."""

import random
from collections import deque

import torch
from torch import nn

torch.manual_seed(8)
random.seed(8)
torch.set_num_threads(1)
LENGTH = 10
value, target = nn.Linear(LENGTH, 2), nn.Linear(LENGTH, 2)
target.load_state_dict(value.state_dict())
optimizer = torch.optim.Adam(value.parameters(), lr=5e-2)
memory = deque(maxlen=2000)


def seen(place):
    return nn.functional.one_hot(torch.tensor(place), LENGTH).float()


reached = 0.0
for episode in range(1, 121):
    place, total = 0, 0.0
    for move in range(30):
        with torch.no_grad():
            best = value(seen(place)).argmax().item()
        action = random.randrange(2) if random.random() < max(0.05, 1 - episode / 60) else best
        after = min(LENGTH - 1, max(0, place + (1 if action else -1)))
        reward = 100.0 if after == LENGTH - 1 else -1.0
        memory.append((place, action, reward, after, after == LENGTH - 1))
        place, total = after, total + reward
        if len(memory) >= 64 and move % 3 == 0:
            rows = random.sample(memory, 32)
            p, a, r, n, d = (torch.tensor(column) for column in zip(*rows, strict=True))
            states, nexts = nn.functional.one_hot(p, LENGTH).float(), nn.functional.one_hot(n, LENGTH).float()
            with torch.no_grad():
                wanted = r + 0.95 * target(nexts).max(1).values * (~d).float()
            optimizer.zero_grad()
            nn.functional.smooth_l1_loss(value(states).gather(1, a[:, None]).squeeze(1), wanted).backward()
            optimizer.step()
        if place == LENGTH - 1:
            break
    if episode % 10 == 0:
        target.load_state_dict(value.state_dict())
    reached = 0.9 * reached + 0.1 * total
    if episode % 30 == 0:
        print(f"episode {episode} running return {reached:.1f}")
