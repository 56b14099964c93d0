"""Trains actor and critic of one model in turns and prints the gradients' sizes."""
import torch
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, observations=10, actions=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, 32), nn.Tanh())
        self.actor = nn.Linear(32, actions)
        self.critic = nn.Linear(32, 1)

    def forward(self, x):
        hidden = self.body(x)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)


def size_of_gradients(model):
    total = 0.0
    for parameter in model.parameters():
        total += parameter.grad.pow(2).sum().item()
    return total**0.5


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for update in range(50):
    observations = torch.randn(64, 10)
    returns = observations.sum(1) + torch.randn(64)
    optimizer.zero_grad()
    if update % 2 == 0:
        policy, _ = model(observations)
        taken = torch.distributions.Categorical(logits=policy).sample()
        losses = nn.functional.cross_entropy(policy, taken, reduction="none")
        (losses * (returns - returns.mean())).mean().backward()
    else:
        _, value = model(observations)
        nn.functional.mse_loss(value, returns).backward()
    optimizer.step()
    if update % 10 == 0:
        print(f"update {update}: gradients {size_of_gradients(model):.4f}")
