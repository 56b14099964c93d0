"""REINFORCE on a small corridor world."""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.distributions import Categorical


class Corridor:
    def __init__(self, length=8, limit=60):
        self.length, self.limit = length, limit

    def reset(self):
        self.place, self.time = 0, 0
        return self.observe()

    def observe(self):
        view = torch.zeros(self.length)
        view[self.place] = 1.0
        return view

    def step(self, action):
        self.time += 1
        self.place = max(0, self.place + (1 if action else -1))
        done = self.place == self.length - 1
        reward = 10.0 if done else -0.1
        return self.observe(), reward, done or self.time >= self.limit


def episode(world, policy):
    view, done, logs, rewards = world.reset(), False, [], []
    while not done:
        choice = Categorical(logits=policy(view))
        action = choice.sample()
        view, reward, done = world.step(int(action))
        logs.append(choice.log_prob(action))
        rewards.append(reward)
    return torch.stack(logs), rewards


def returns(rewards, gamma):
    total, result = 0.0, []
    for reward in reversed(rewards):
        total = reward + gamma * total
        result.insert(0, total)
    return torch.tensor(result)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--gamma", type=float, default=0.98)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--page", type=Path, default=Path("run.md"))
    args = parser.parse_args()
    world = Corridor()
    policy = nn.Sequential(nn.Linear(world.length, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=args.lr)
    records = []
    for number in range(args.episodes):
        logs, rewards = episode(world, policy)
        value = returns(rewards, args.gamma)
        loss = -(logs * (value - value.mean())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        records.append({"episode": number, "return": sum(rewards), "length": len(rewards)})
    torch.save(policy.state_dict(), "policy.pt")

    from summary import page

    args.page.write_text(page("Corridor", records, {"gamma": args.gamma, "lr": args.lr}))


if __name__ == "__main__":
    main()
