"""Proximal policy optimization on a 5 by 5 grid with a goal in the corner."""

import torch
from torch import nn

torch.manual_seed(17)
moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(25, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, states):
        hidden = self.body(nn.functional.one_hot(states[:, 0] * 5 + states[:, 1], 25).float())
        return torch.distributions.Categorical(logits=self.actor(hidden)), self.critic(
            hidden
        ).squeeze(1)


policy = ActorCritic()
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)


def collect(count=32, length=16):
    states = torch.randint(4, (count, 2))
    told = []
    for _ in range(length):
        with torch.no_grad():
            choice, value = policy(states)
            action = choice.sample()
        after = (states + moves[action]).clamp(0, 4)
        reward = (after == 4).all(1).float() - 0.05
        told.append((states, action, choice.log_prob(action), value, reward))
        states = torch.where((after == 4).all(1, keepdim=True), torch.randint(4, (count, 2)), after)
    with torch.no_grad():
        running = policy(states)[1]
    returns = []
    for *_, reward in reversed(told):
        running = reward + 0.9 * running
        returns.insert(0, running)
    columns = [torch.cat([row[i] for row in told]) for i in range(5)]
    return (*columns, torch.cat(returns))


for update in range(30):
    states, actions, old, values, rewards, returns = collect()
    advantages = returns - values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(4):
        for part in torch.randperm(len(states)).split(128):
            choice, value = policy(states[part])
            ratio = (choice.log_prob(actions[part]) - old[part]).exp()
            gain = torch.min(ratio * advantages[part], ratio.clamp(0.8, 1.2) * advantages[part])
            loss = (
                -gain.mean()
                + 0.5 * (value - returns[part]).square().mean()
                - 0.01 * choice.entropy().mean()
            )
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
    print(f"update {update} reward {rewards.mean().item():.3f} loss {loss.item():.3f}")
