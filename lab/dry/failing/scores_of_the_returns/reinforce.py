import argparse
import random

import numpy as np
import torch
from torch import nn


class Corridor:
    """Walk to the right end; an episode ends there or after forty steps."""

    def reset(self):
        self.at, self.steps = 3, 0
        return self.state()

    def state(self):
        return torch.nn.functional.one_hot(torch.tensor(self.at), 8).float()

    def step(self, action):
        self.at = max(0, min(7, self.at + (1 if action else -1)))
        self.steps += 1
        done = self.at == 7 or self.steps >= 40
        return self.state(), float(self.at == 7) - 0.01, done


def episode(policy, env):
    state, done, chosen, rewards = env.reset(), False, [], []
    while not done:
        distribution = torch.distributions.Categorical(logits=policy(state))
        action = distribution.sample()
        state, reward, done = env.step(action.item())
        chosen.append(distribution.log_prob(action))
        rewards.append(reward)
    return torch.stack(chosen), rewards


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=100)
    options = parser.parse_args()
    torch.manual_seed(0)
    policy, env = nn.Linear(8, 2), Corridor()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    every = []
    for number in range(options.episodes):
        chosen, rewards = episode(policy, env)
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(chosen * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        every.append(rewards)
    print("mean of all", np.mean(every))


if __name__ == "__main__":
    main()
