"""REINFORCE on a corridor with slippery steps and a small reward at the near end: noisy returns, no data set."""

import random

import torch
from torch import nn
from torch.distributions import Categorical

random.seed(5)
torch.manual_seed(5)
LENGTH, GAMMA, EPISODES = 9, 0.95, 1200


class Corridor:
    def reset(self):
        self.at, self.time = 3, 0
        return self.at

    def step(self, action):
        move = 1 if action == 1 else -1
        if random.random() < 0.1:
            move = -move
        self.at = max(0, min(LENGTH - 1, self.at + move))
        self.time += 1
        reward = 10.0 if self.at == LENGTH - 1 else 1.0 if self.at == 0 else -0.05
        return self.at, reward, self.at in (0, LENGTH - 1) or self.time >= 40


policy = nn.Sequential(nn.Embedding(LENGTH, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
env, recent, baseline = Corridor(), [], 0.0
for episode in range(EPISODES):
    state, done, log_probs, rewards = env.reset(), False, [], []
    while not done:
        dist = Categorical(logits=policy(torch.tensor(state)))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + GAMMA * g
        returns.insert(0, g)
    advantage = torch.tensor(returns) - baseline
    baseline = 0.95 * baseline + 0.05 * returns[0]
    loss = -(torch.stack(log_probs) * advantage).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent = [*recent, sum(rewards)][-100:]
    if episode % 100 == 99:
        print(f"episode {episode + 1} loss {loss.item():.3f} mean_reward {sum(recent) / len(recent):.3f}")
