import argparse

import torch
from torch import nn


class Pole:
    """A number that drifts; it falls when it is beyond 4."""

    def reset(self):
        self.x, self.v, self.steps = 0.0, 0.0, 0
        return torch.tensor([self.x, self.v])

    def step(self, action):
        self.v += (0.5 if action else -0.5) + 0.2 * self.x
        self.x += self.v
        self.steps += 1
        return torch.tensor([self.x, self.v]), 1.0, abs(self.x) > 4 or self.steps >= 200


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=100)
    options = parser.parse_args()
    torch.manual_seed(0)
    policy, env = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)), Pole()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    lengths = []
    for number in range(options.episodes):
        state, done = env.reset(), False
        chosen, rewards = [], []
        while not done:
            distribution = torch.distributions.Categorical(logits=policy(state))
            action = distribution.sample()
            chosen.append(distribution.log_prob(action))
            state, reward, done = env.step(action.item())
            rewards.append(reward)
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        returns = (returns - returns.mean()) / returns.std()
        loss = -(torch.stack(chosen) * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not torch.isfinite(loss):
            raise RuntimeError(f"the loss of episode {number} is {loss.item()}")
        lengths.append(len(rewards))
    assert min(lengths) > 1
    print("mean length", sum(lengths) / len(lengths))


if __name__ == "__main__":
    main()
