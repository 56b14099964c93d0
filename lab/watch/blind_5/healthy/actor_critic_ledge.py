"""One-step actor-critic with two optimizers: 64 walkers on a slippery ledge; the losses say little about the return."""

import torch
from torch import nn
from torch.distributions import Categorical

SEED = 10
torch.manual_seed(SEED)
LENGTH, WALKERS, DISCOUNT = 8, 64, 0.95


def observe(position):
    return nn.functional.one_hot(position, LENGTH).float()


def move(position, action):
    action = torch.where(torch.rand(len(action)) < 0.1, 1 - action, action)
    position = position + 2 * action - 1
    goal, fell = position >= LENGTH, position < 0
    reward = torch.where(goal, 1.0, torch.where(fell, -1.0, -0.02))
    return position.clamp(0, LENGTH - 1), reward, goal | fell


actor = nn.Sequential(nn.Linear(LENGTH, 32), nn.Tanh(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(LENGTH, 32), nn.Tanh(), nn.Linear(32, 1))
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=5e-3)
position = torch.randint(LENGTH // 2, (WALKERS,))
for step in range(1, 1501):
    state = observe(position)
    policy = Categorical(logits=actor(state))
    action = policy.sample()
    position, reward, done = move(position, action)
    value = critic(state).squeeze(-1)
    with torch.no_grad():
        target = reward + DISCOUNT * critic(observe(position)).squeeze(-1) * (~done)
    advantage = (target - value).detach()
    critic_loss = (value - target).pow(2).mean()
    actor_loss = -(policy.log_prob(action) * advantage).mean() - 0.01 * policy.entropy().mean()

    critic_optimizer.zero_grad()
    actor_optimizer.zero_grad()
    critic_loss.backward()
    actor_loss.backward()
    critic_optimizer.step()
    actor_optimizer.step()
    position = torch.where(done, torch.randint(LENGTH // 2, (WALKERS,)), position)
    if step % 300 == 0:
        print(f"step {step} actor loss {actor_loss.item():.4f} critic loss {critic_loss.item():.4f}")

position, returned, alive = torch.randint(LENGTH // 2, (500,)), torch.zeros(500), torch.ones(500, dtype=torch.bool)
with torch.no_grad():
    for _ in range(60):
        position, reward, done = move(position, Categorical(logits=actor(observe(position))).sample())
        returned += reward * alive
        alive &= ~done
print(f"mean return {returned.mean():.4f}")
