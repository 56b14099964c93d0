"""Policy gradient with a learned baseline on a contextual bandit."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(8)
ARMS, CONTEXT = 6, 10
hidden_map = torch.randn(CONTEXT, ARMS)


def pull(context, arm):
    means = (context @ hidden_map).softmax(1)
    return means.gather(1, arm.unsqueeze(1)).squeeze(1) + 0.05 * torch.randn(len(arm))


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CONTEXT, 64), nn.Tanh())
        self.policy = nn.Linear(64, ARMS)
        self.value = nn.Linear(64, 1)

    def forward(self, context):
        hidden = self.body(context)
        return Categorical(logits=self.policy(hidden)), self.value(hidden).squeeze(1)


agent = ActorCritic()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
for update in range(350):
    context = torch.randn(64, CONTEXT)
    distribution, value = agent(context)
    arm = distribution.sample()
    reward = pull(context, arm)
    advantage = reward - value.detach()
    policy_loss = -(distribution.log_prob(arm) * advantage).mean()
    value_loss = nn.functional.mse_loss(value, reward)
    loss = policy_loss + 0.5 * value_loss - 0.003 * distribution.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 50 == 49:
        mean_reward = reward.mean().item()
        print(f"update {update} mean reward {mean_reward:.3f}")
