"""Moves a mass to the origin with a deterministic policy (DDPG)."""

import copy
from collections import deque
from random import Random

import torch
from torch import nn

torch.manual_seed(4)
torch.set_num_threads(1)
random = Random(4)
GAMMA, BLEND = 0.95, 0.02


class World:
    def reset(self) -> torch.Tensor:
        self.state = torch.tensor([random.uniform(-2, 2), random.uniform(-0.5, 0.5)])
        self.time = 0
        return self.state

    def step(self, push: float) -> tuple[torch.Tensor, float, bool]:
        position, speed = self.state.tolist()
        speed = 0.9 * speed + 0.3 * max(-1.0, min(1.0, push))
        position += 0.5 * speed
        self.state = torch.tensor([position, speed])
        self.time += 1
        return self.state, -(position**2) - 0.05 * push**2, self.time >= 25


actor = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
slow_actor, slow_critic = copy.deepcopy(actor), copy.deepcopy(critic)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3)
memory: deque = deque(maxlen=5000)


def follow(slow: nn.Module, fast: nn.Module) -> None:
    with torch.no_grad():
        for old, new in zip(slow.parameters(), fast.parameters()):
            old.lerp_(new, BLEND)


def learn() -> None:
    rows = random.sample(memory, 64)
    state, push, reward, after, final = (torch.stack(column) for column in zip(*rows))
    with torch.no_grad():
        future = slow_critic(torch.cat([after, slow_actor(after)], 1))
        target = reward + GAMMA * (1 - final) * future
    critic_loss = nn.functional.mse_loss(critic(torch.cat([state, push], 1)), target)
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    actor_loss = -critic(torch.cat([state, actor(state)], 1)).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
    follow(slow_actor, actor)
    follow(slow_critic, critic)


world = World()
returns: list[float] = []
for episode in range(60):
    state, done, total = world.reset(), False, 0.0
    while not done:
        with torch.no_grad():
            push = actor(state).item() + random.gauss(0, 0.3)
        after, reward, done = world.step(push)
        row = (state, torch.tensor([push]), torch.tensor([reward]), after, torch.tensor([0.0]))
        memory.append(row)
        state, total = after, total + reward
        if len(memory) >= 200:
            learn()
    returns.append(total)
    if episode % 10 == 9:
        print(f"episode {episode + 1} mean return {sum(returns[-10:]) / 10:.2f}")
