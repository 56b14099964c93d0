"""Deep Q-learning in a small warehouse, with a slow shadow of the network for the targets."""
import copy

import torch
from torch import nn

SEED = 8
SIZE, WALLS = 6, {(1, 1), (1, 2), (1, 3), (3, 2), (3, 3), (3, 4), (4, 4)}
GOAL, PIT = (5, 5), (2, 4)
MOVES = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])
GAMMA, TAU, ROBOTS = 0.95, 0.05, 16
torch.manual_seed(SEED)
blocked = torch.zeros(SIZE, SIZE, dtype=torch.bool)
for wall in WALLS:
    blocked[wall] = True
free = (~blocked).nonzero()


def fresh(count):
    return free[torch.randint(len(free) - 1, (count,))]


def move(places, actions):
    wanted = (places + MOVES[actions]).clamp(0, SIZE - 1)
    after = torch.where(blocked[wanted[:, 0], wanted[:, 1]][:, None], places, wanted)
    goal, pit = (after == torch.tensor(GOAL)).all(1), (after == torch.tensor(PIT)).all(1)
    return after, goal.float() - pit.float() - 0.01, goal | pit


def encode(places):
    return nn.functional.one_hot(places, SIZE).flatten(1).float()


def evaluate(network):
    places, total, active = free[:-1].clone(), torch.zeros(len(free) - 1), torch.ones(len(free) - 1)
    for _ in range(20):
        places, reward, over = move(places, network(encode(places)).argmax(1))
        total += reward * active
        active = active * (1 - over.float())
    return total.mean()


network = nn.Sequential(nn.Linear(2 * SIZE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
shadow = copy.deepcopy(network)
optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
memory, places = [], fresh(ROBOTS)
for step in range(1500):
    with torch.no_grad():
        actions = network(encode(places)).argmax(1)
        random = torch.rand(ROBOTS) < max(0.1, 1 - step / 700)
        actions = torch.where(random, torch.randint(4, (ROBOTS,)), actions)
        after, reward, over = move(places, actions)
    memory.append((places, actions, reward, after, over.float()))
    memory = memory[-600:]
    places = torch.where((over | (torch.rand(ROBOTS) < 0.03))[:, None], fresh(ROBOTS), after)
    if len(memory) < 40:
        continue
    drawn = [memory[i] for i in torch.randint(len(memory), (4,)).tolist()]
    old, taken, reward, new, over = (torch.cat(part) for part in zip(*drawn))
    with torch.no_grad():
        best = reward + GAMMA * (1 - over) * shadow(encode(new)).amax(1)
    value = network(encode(old)).gather(1, taken[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, best)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(shadow.parameters(), network.parameters()):
            slow.lerp_(fast, TAU)
    if step % 300 == 299:
        with torch.no_grad():
            print(f"step {step + 1}: loss {loss.item():.5f}, mean return {evaluate(network):.4f}")
