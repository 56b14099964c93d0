"""Q-learning with replay in a slippery corridor; uphill to the goal, downhill to a pit."""

import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(7)
torch.manual_seed(7)
LENGTH, GAMMA, START = 12, 0.9, 3


def move(place, action):
    step = 1 if action == 1 else -1
    if random.random() < 0.15:
        step = -step
    place += step
    if place == LENGTH - 1:
        return place, 1.0, True
    if place == 0:
        return place, -0.5, True
    return place, -0.02 if step > 0 else 0.0, False


def encode(places):
    return F.one_hot(torch.as_tensor(places), LENGTH).float()


def play(net, games=100):
    total = 0.0
    for _ in range(games):
        place, done, steps = START, False, 0
        while not done and steps < 60:
            with torch.no_grad():
                action = int(net(encode([place])).argmax())
            place, reward, done = move(place, action)
            total, steps = total + reward, steps + 1
    return total / games


online = nn.Sequential(nn.Linear(LENGTH, 48), nn.ReLU(), nn.Linear(48, 2))
target = copy.deepcopy(online)
optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
memory, place, updates = [], START, 0

for step in range(4000):
    epsilon = max(0.1, 1 - step / 2000)
    with torch.no_grad():
        greedy = int(online(encode([place])).argmax())
    action = random.randrange(2) if random.random() < epsilon else greedy
    following, reward, done = move(place, action)
    memory.append((place, action, reward, following, float(done)))
    place = random.randrange(1, LENGTH - 1) if done else following
    if step >= 200 and step % 2 == 0:
        places, actions, rewards, nexts, ends = zip(*random.sample(memory[-2500:], 64))
        q = online(encode(places)).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
        with torch.no_grad():
            future = target(encode(nexts)).max(1).values
            goal = torch.tensor(rewards) + GAMMA * (1 - torch.tensor(ends)) * future
        loss = F.smooth_l1_loss(q, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
        if updates % 50 == 0:
            target.load_state_dict(online.state_dict())
    if step % 800 == 799:
        print(f"step {step + 1} loss {loss.item():.4f} epsilon {epsilon:.2f}")

print(f"mean return {play(online):.4f}")
