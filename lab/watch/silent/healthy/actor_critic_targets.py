"""Deterministic policy gradients with target networks: a cart is steered to the middle of a line."""

import copy

import torch
from torch import nn

torch.manual_seed(37)


def mlp(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, outputs)
    )


class Agent:
    def __init__(self):
        self.actor, self.critic = mlp(2, 1), mlp(3, 1)
        self.actor_target, self.critic_target = (
            copy.deepcopy(self.actor),
            copy.deepcopy(self.critic),
        )
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=2e-3)

    def update(self, state, action, reward, after):
        with torch.no_grad():
            next_action = self.actor_target(after).tanh()
            target = reward + 0.95 * self.critic_target(torch.cat([after, next_action], 1))
        critic_loss = nn.functional.mse_loss(self.critic(torch.cat([state, action], 1)), target)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        chosen = self.actor(state).tanh()
        actor_loss = -self.critic(torch.cat([state, chosen], 1)).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        for target, source in ((self.actor_target, self.actor), (self.critic_target, self.critic)):
            for a, b in zip(target.parameters(), source.parameters(), strict=True):
                a.data.mul_(0.98).add_(0.02 * b.data)
        return critic_loss.item()


agent, memory = Agent(), []
state = torch.rand(16, 2) * 2 - 1
for step in range(500):
    with torch.no_grad():
        action = (agent.actor(state).tanh() + 0.3 * torch.randn(16, 1)).clamp(-1, 1)
    speed = (0.9 * state[:, 1:] + 0.1 * action).clamp(-1, 1)
    after = torch.cat([(state[:, :1] + 0.2 * speed).clamp(-1, 1), speed], 1)
    reward = -after[:, :1].abs()
    memory.append((state, action, reward, after))
    state = torch.where(torch.rand(16, 1) < 0.03, torch.rand(16, 2) * 2 - 1, after)
    if step > 30:
        rows = [
            memory[i] for i in torch.randint(max(0, len(memory) - 300), len(memory), (4,)).tolist()
        ]
        loss = agent.update(*(torch.cat(column) for column in zip(*rows, strict=True)))
        if step % 100 == 0:
            print(f"step {step} critic {loss:.4f} reward {reward.mean().item():.3f}")
