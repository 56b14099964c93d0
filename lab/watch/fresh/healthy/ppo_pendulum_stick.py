"""Proximal policy optimization balances a stick with a continuous push; the clipped objective stays near zero by nature.

Should reach: mean steps of at least 120 of 200; an untrained policy falls after about 20.
"""
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(22)
torch.set_num_threads(1)
ENVIRONMENTS, HORIZON, LIMIT = 16, 64, 200


class Sticks:
    """Many sticks at once; one that falls or has stood long enough begins anew."""

    def __init__(self, count):
        self.state = 0.1 * torch.randn(count, 2)
        self.age = torch.zeros(count)
        self.finished = []

    def step(self, push):
        angle, speed = self.state.unbind(1)
        speed = speed + 0.05 * (9 * torch.sin(angle) + 6 * push.clamp(-1.5, 1.5)) + 0.03 * torch.randn(len(push))
        angle = angle + 0.05 * speed
        self.age += 1
        fallen = angle.abs() > 0.8
        done = fallen | (self.age >= LIMIT)
        reward = 1.0 - angle.abs() - 0.01 * push.pow(2)
        self.finished += self.age[done].tolist()
        self.state = torch.where(done[:, None], 0.1 * torch.randn(len(push), 2), torch.stack([angle, speed], 1))
        self.age[done] = 0
        return reward, done.float()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
        self.critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.tensor(-0.5))
        nn.init.orthogonal_(self.actor[2].weight, 0.01)

    def forward(self, state):
        return Normal(self.actor(state).squeeze(1), self.log_std.exp()), self.critic(state).squeeze(1)


agent, sticks = ActorCritic(), Sticks(ENVIRONMENTS)
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3, eps=1e-5)
for update in range(1, 41):
    states, pushes, logs, values, rewards, dones = [], [], [], [], [], []
    with torch.no_grad():
        for _ in range(HORIZON):
            policy, value = agent(sticks.state)
            push = policy.sample()
            states.append(sticks.state), pushes.append(push), logs.append(policy.log_prob(push)), values.append(value)
            reward, done = sticks.step(push)
            rewards.append(reward), dones.append(done)
        following = agent(sticks.state)[1]
        advantages, advantage = [], torch.zeros(ENVIRONMENTS)
        for t in reversed(range(HORIZON)):
            delta = rewards[t] + 0.97 * following * (1 - dones[t]) - values[t]
            advantage = delta + 0.97 * 0.95 * (1 - dones[t]) * advantage
            advantages.insert(0, advantage)
            following = values[t]
    states, pushes, logs = torch.cat(states), torch.cat(pushes), torch.cat(logs)
    advantages = torch.cat(advantages)
    returns = advantages + torch.cat(values)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(4):
        for rows in torch.randperm(len(states)).split(256):
            policy, value = agent(states[rows])
            ratio = (policy.log_prob(pushes[rows]) - logs[rows]).exp()
            gain = torch.min(ratio * advantages[rows], ratio.clamp(0.8, 1.2) * advantages[rows]).mean()
            loss = -gain + 0.02 * (value - returns[rows]).pow(2).mean() - 0.001 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    if update % 4 == 0:
        recent, sticks.finished = sticks.finished, []
        print(f"update {update} objective {gain.item():+.4f} loss {loss.item():.3f} mean steps {sum(recent) / max(1, len(recent)):.1f}")
