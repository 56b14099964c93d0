"""Clipped policy gradient for one environment."""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self, observations, actions, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(observations, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.policy = nn.Linear(width, actions)
        self.value = nn.Linear(width, 1)

    def forward(self, observation):
        hidden = self.body(observation)
        return Categorical(logits=self.policy(hidden)), self.value(hidden).squeeze(-1)


def rollout(env, model, steps, observation):
    kept = {"observation": [], "action": [], "log_prob": [], "reward": [], "value": [], "done": []}
    for _ in range(steps):
        tensor = torch.as_tensor(observation, dtype=torch.float32)
        with torch.no_grad():
            distribution, value = model(tensor)
        action = distribution.sample()
        following, reward, terminated, truncated, _ = env.step(action.item())
        for name, item in zip(
            kept,
            (tensor, action, distribution.log_prob(action), reward, value, terminated or truncated),
        ):
            kept[name].append(item)
        observation = env.reset()[0] if terminated or truncated else following
    return kept, observation


def returns_of(kept, gamma=0.99):
    total, out = 0.0, []
    for reward, done in zip(reversed(kept["reward"]), reversed(kept["done"])):
        total = reward + gamma * total * (1.0 - float(done))
        out.append(total)
    return torch.tensor(np.array(out[::-1]), dtype=torch.float32)


def update(model, optimizer, kept, clip=0.2, epochs=4):
    observations = torch.stack(kept["observation"])
    actions = torch.stack(kept["action"])
    old = torch.stack(kept["log_prob"])
    returns = returns_of(kept)
    advantage = returns - torch.stack(kept["value"])
    for _ in range(epochs):
        distribution, value = model(observations)
        ratio = (distribution.log_prob(actions) - old).exp()
        clipped = ratio.clamp(1 - clip, 1 + clip)
        loss = -torch.min(ratio * advantage, clipped * advantage).mean()
        loss = loss + 0.5 * (returns - value).pow(2).mean() - 0.01 * distribution.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--total-steps", type=int, default=100000)
    parser.add_argument("--rollout", type=int, default=2048)
    args = parser.parse_args()
    env = gym.make(args.env)
    model = ActorCritic(env.observation_space.shape[0], env.action_space.n)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    observation, _ = env.reset(seed=1)
    for start in range(0, args.total_steps, args.rollout):
        kept, observation = rollout(env, model, args.rollout, observation)
        update(model, optimizer, kept)
        print(f"{start + args.rollout}: mean reward {np.mean(kept['reward']):.3f}")


if __name__ == "__main__":
    main()
