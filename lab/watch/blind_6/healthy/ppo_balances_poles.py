"""Proximal policy optimization on many simulated poles at once."""
import math

import torch
from torch import nn
from torch.distributions import Categorical

SEED = 2
POLES, STEPS, UPDATES = 32, 48, 45
GAMMA, LAMBDA, CLIP = 0.98, 0.95, 0.2
torch.manual_seed(SEED)


class Poles:
    """The usual cart and pole, all in one tensor; a pole that falls starts again."""

    def __init__(self, count):
        self.state = torch.empty(count, 4).uniform_(-0.05, 0.05)
        self.age = torch.zeros(count)

    def step(self, action):
        x, speed, angle, turn = self.state.unbind(1)
        force = action.float() * 20 - 10
        common = (force + 0.05 * turn**2 * angle.sin()) / 1.1
        bend = (9.8 * angle.sin() - angle.cos() * common) / (0.5 * (4 / 3 - 0.1 * angle.cos() ** 2 / 1.1))
        push = common - 0.05 * bend * angle.cos() / 1.1
        self.state = torch.stack([x + 0.02 * speed, speed + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * bend], 1)
        self.age += 1
        fallen = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 12 * math.pi / 180)
        ages = self.age[fallen]
        self.state = torch.where(fallen[:, None], torch.empty_like(self.state).uniform_(-0.05, 0.05), self.state)
        self.age = torch.where(fallen, 0.0, self.age)
        return self.state, torch.ones(len(action)), fallen, ages


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.policy, self.value = nn.Linear(48, 2), nn.Linear(48, 1)

    def forward(self, state):
        hidden = self.body(state)
        return Categorical(logits=self.policy(hidden)), self.value(hidden).squeeze(-1)


agent, poles = Agent(), Poles(POLES)
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
state, lengths = poles.state, []
for update in range(UPDATES):
    states, actions, chances, values, rewards, alive = [], [], [], [], [], []
    with torch.no_grad():
        for _ in range(STEPS):
            policy, value = agent(state)
            action = policy.sample()
            states.append(state)
            actions.append(action)
            chances.append(policy.log_prob(action))
            values.append(value)
            state, reward, fallen, ages = poles.step(action)
            rewards.append(reward)
            alive.append(1.0 - fallen.float())
            lengths += ages.tolist()
        following, advantage, advantages = agent(state)[1], torch.zeros(POLES), []
        for t in reversed(range(STEPS)):
            delta = rewards[t] + GAMMA * following * alive[t] - values[t]
            advantage = delta + GAMMA * LAMBDA * alive[t] * advantage
            advantages.insert(0, advantage)
            following = values[t]
    states, actions, chances = torch.cat(states), torch.cat(actions), torch.cat(chances)
    advantages, values = torch.cat(advantages), torch.cat(values)
    returns = advantages + values
    for _ in range(4):
        for index in torch.randperm(len(states)).chunk(3):
            policy, value = agent(states[index])
            gain = advantages[index]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            ratio = (policy.log_prob(actions[index]) - chances[index]).exp()
            surrogate = torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain)
            loss = -surrogate.mean() + 0.5 * nn.functional.mse_loss(value, returns[index]) / 100
            loss = loss - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    if update % 9 == 8:
        last = lengths[-40:]
        print(f"update {update + 1}: loss {loss.item():.4f}, {len(lengths)} poles fell, the last after {sum(last) / len(last):.1f} steps")

with torch.no_grad():
    poles = Poles(POLES)
    state, steps = poles.state, torch.full((POLES,), 400.0)
    for number in range(400):
        state, _, fallen, _ = poles.step(agent(state)[0].probs.argmax(1))
        steps = torch.where(fallen & (steps == 400), float(number), steps)
print(f"mean steps until the fall: {steps.mean():.1f}")
