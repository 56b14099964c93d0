import argparse
from collections import deque
from itertools import count

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser(description="REINFORCE")
parser.add_argument("--gamma", type=float, default=0.99, metavar="G")
parser.add_argument("--seed", type=int, default=543, metavar="N")
parser.add_argument("--render", action="store_true")
parser.add_argument("--log-interval", type=int, default=10, metavar="N")
args = parser.parse_args()

env = gym.make("CartPole-v1", render_mode="human") if args.render else gym.make("CartPole-v1")
env.reset(seed=args.seed)
torch.manual_seed(args.seed)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 128)
        self.out = nn.Linear(128, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.out(F.relu(self.hidden(x))), dim=1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    m = Categorical(policy(torch.from_numpy(state).float().unsqueeze(0)))
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    value, returns = 0, deque()
    for reward in policy.rewards[::-1]:
        value = reward + args.gamma * value
        returns.appendleft(value)
    returns = torch.tensor(list(returns))
    returns = (returns - returns.mean()) / (returns.std() + eps)
    losses = [-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns)]
    optimizer.zero_grad()
    torch.cat(losses).sum().backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


def main():
    running_reward = 10
    for i_episode in count(1):
        state, _ = env.reset()
        ep_reward = 0
        for t in range(1, 10000):
            state, reward, done, _, _ = env.step(select_action(state))
            policy.rewards.append(reward)
            ep_reward += reward
            if done:
                break
        running_reward = 0.05 * ep_reward + 0.95 * running_reward
        finish_episode()
        if i_episode % args.log_interval == 0:
            print(f"Episode {i_episode} last {ep_reward:.2f} average {running_reward:.2f} length {t}")
        if running_reward > 475:
            break


if __name__ == "__main__":
    main()
