"""Advantage actor-critic in a small grid world; two networks, each with its own optimizer.

Should reach: mean return of at least 0.75 (the shortest ways give about 0.9).
"""

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

torch.manual_seed(3)
torch.set_num_threads(1)

SIZE, GOAL, LIMIT = 5, 24, 40
ENVIRONMENTS, ROLLOUT, UPDATES, GAMMA = 64, 8, 250, 0.97


class Grid:
    """Many copies of a 5 x 5 grid: reach the corner, each step costs 0.02."""

    def __init__(self, copies):
        self.position = torch.randint(0, GOAL, (copies,))
        self.steps = torch.zeros(copies)
        self.total = torch.zeros(copies)
        self.finished = []

    def observe(self):
        return F.one_hot(self.position, SIZE * SIZE).float()

    def step(self, action):
        row, column = self.position // SIZE, self.position % SIZE
        row = (row + (action == 0).long() - (action == 1).long()).clamp(0, SIZE - 1)
        column = (column + (action == 2).long() - (action == 3).long()).clamp(0, SIZE - 1)
        self.position = row * SIZE + column
        self.steps += 1
        reached = self.position == GOAL
        reward = reached.float() - 0.02
        self.total += reward
        done = reached | (self.steps >= LIMIT)
        self.finished += self.total[done].tolist()
        self.position = torch.where(done, torch.randint(0, GOAL, done.shape), self.position)
        self.steps[done] = 0
        self.total[done] = 0
        return reward, done.float()


actor = nn.Sequential(nn.Linear(SIZE * SIZE, 64), nn.Tanh(), nn.Linear(64, 4))
critic = nn.Sequential(nn.Linear(SIZE * SIZE, 64), nn.Tanh(), nn.Linear(64, 1))
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=2e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=5e-3)
grid = Grid(ENVIRONMENTS)

for update in range(1, UPDATES + 1):
    states, log_probabilities, entropies, rewards, dones = [], [], [], [], []
    for _ in range(ROLLOUT):
        state = grid.observe()
        policy = Categorical(logits=actor(state))
        action = policy.sample()
        reward, done = grid.step(action)
        states.append(state)
        log_probabilities.append(policy.log_prob(action))
        entropies.append(policy.entropy())
        rewards.append(reward)
        dones.append(done)

    with torch.no_grad():
        future = critic(grid.observe()).squeeze(1)
    targets = []
    for reward, done in zip(reversed(rewards), reversed(dones)):
        future = reward + GAMMA * future * (1 - done)
        targets.insert(0, future)
    targets = torch.stack(targets)
    values = critic(torch.stack(states)).squeeze(2)
    advantages = (targets - values).detach()

    critic_loss = F.mse_loss(values, targets)
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()

    actor_loss = -(torch.stack(log_probabilities) * advantages).mean() - 0.005 * torch.stack(entropies).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()

    if update % 25 == 0:
        recent = sum(grid.finished) / max(len(grid.finished), 1)
        grid.finished.clear()
        print(f"update {update:3d}  critic loss {critic_loss.item():.4f}  mean return {recent:.3f}")
