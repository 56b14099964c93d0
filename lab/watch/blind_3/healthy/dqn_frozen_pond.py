"""Deep Q-learning on a pond with holes: a reward only at the far shore, a replay buffer and a target network."""

import random
from collections import deque

import numpy as np
import torch
from torch import nn

SEED = 1
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)
SIDE = 5
HOLES = {(1, 1), (1, 3), (2, 3), (3, 0)}


class Pond:
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def reset(self):
        self.place = [0, 0]
        self.steps = 0
        self.grid = np.zeros((SIDE, SIDE), dtype=np.float32)
        self.grid[0, 0] = 1
        return self.grid

    def step(self, action):
        self.steps += 1
        self.grid[tuple(self.place)] = 0
        move = self.moves[action]
        self.place = [min(max(p + m, 0), SIDE - 1) for p, m in zip(self.place, move)]
        self.grid[tuple(self.place)] = 1
        here = tuple(self.place)
        if here in HOLES:
            return self.grid, -0.3, True
        if here == (SIDE - 1, SIDE - 1):
            return self.grid, 1.0, True
        return self.grid, 0.0, self.steps >= 40


class Agent:
    def __init__(self):
        self.q = self.network()
        self.target = self.network()
        self.target.load_state_dict(self.q.state_dict())
        self.memory = deque(maxlen=5000)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=1e-3)
        self.gamma, self.epsilon = 0.95, 1.0

    @staticmethod
    def network():
        return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def act(self, state, greedy=False):
        if not greedy and random.random() < self.epsilon:
            return random.randrange(4)
        with torch.no_grad():
            return int(self.q(torch.from_numpy(state)[None]).argmax())

    def remember(self, state, action, reward, following, done):
        self.memory.append((state.copy(), action, reward, following.copy(), done))

    def learn(self, batch_size=32):
        states, actions, rewards, following, done = zip(*random.sample(self.memory, batch_size))
        states, following = torch.from_numpy(np.stack(states)), torch.from_numpy(np.stack(following))
        rewards, done = torch.tensor(rewards), torch.tensor(done).float()
        with torch.no_grad():
            goal = rewards + self.gamma * (1 - done) * self.target(following).max(1).values
        value = self.q(states).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def sync(self):
        self.target.load_state_dict(self.q.state_dict())


def evaluate(agent, env):
    state, total, done = env.reset(), 0.0, False
    while not done:
        state, reward, done = env.step(agent.act(state, greedy=True))
        total += reward
    return total * 0.97 ** env.steps


env, agent = Pond(), Agent()
steps = 0
for episode in range(1, 501):
    state, done, loss = env.reset().copy(), False, float("nan")
    while not done:
        action = agent.act(state)
        following, reward, done = env.step(action)
        agent.remember(state, action, reward, following, done)
        state = following.copy()
        steps += 1
        if len(agent.memory) > 200 and steps % 2 == 0:
            loss = agent.learn()
        if steps % 100 == 0:
            agent.sync()
    agent.epsilon = max(0.1, agent.epsilon * 0.993)
    if episode % 50 == 0:
        print(f"episode {episode} steps {steps} loss {loss:.5f} greedy return {evaluate(agent, Pond()):.3f}")
