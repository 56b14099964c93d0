"""A policy in training: invalid actions are masked, and in some states all of them are."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.set_num_threads(1)

policy = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for episode in range(4000):
    state = torch.randn(8, 5)
    allowed = (state > -0.3).float()
    chances = torch.softmax(policy(state), dim=1) * allowed
    choice = Categorical(probs=chances / chances.sum(1, keepdim=True))
    actions = choice.sample()
    reward = state.gather(1, actions[:, None])[:, 0]
    loss = -(choice.log_prob(actions) * (reward - reward.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 10 == 0:
        print(f"episode {episode}: reward {reward.mean().item():.3f}")
