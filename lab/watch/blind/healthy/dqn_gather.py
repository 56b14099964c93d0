"""DQN with replay memory and a target network: collect two items on a 4 x 4 grid, then reach the exit."""

import collections
import copy
import random

import torch
from torch import nn

random.seed(71)
torch.manual_seed(71)
SIDE, MOVES = 4, [(0, 1), (0, -1), (1, 0), (-1, 0)]


class Grid:
    def reset(self):
        self.me, self.items, self.time = (0, 0), {(0, 3), (3, 0)}, 0
        return self.state()

    def state(self):
        s = torch.zeros(SIDE * SIDE + 2)
        s[self.me[0] * SIDE + self.me[1]] = 1
        s[-2], s[-1] = (0, 3) in self.items, (3, 0) in self.items
        return s

    def step(self, a):
        self.me = tuple(min(SIDE - 1, max(0, p + d)) for p, d in zip(self.me, MOVES[a]))
        self.time += 1
        reward = -0.02
        if self.me in self.items:
            self.items.discard(self.me)
            reward += 1
        out = self.me == (3, 3)
        return self.state(), reward + (0.5 if out else 0), out or self.time >= 30


q_net = nn.Sequential(nn.Linear(18, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
target_net = copy.deepcopy(q_net)
optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-3)
memory = collections.deque(maxlen=5000)
GAMMA, BATCH, SYNC = 0.95, 64, 100
env, steps = Grid(), 0


def greedy_return():
    state, done, total = env.reset(), False, 0.0
    while not done:
        with torch.no_grad():
            state, reward, done = env.step(q_net(state).argmax().item())
        total += reward
    return total


for episode in range(260):
    epsilon = max(0.1, 1 - episode / 150)
    state, done = env.reset(), False
    while not done:
        with torch.no_grad():
            a = random.randrange(4) if random.random() < epsilon else q_net(state).argmax().item()
        after, reward, done = env.step(a)
        memory.append((state, a, reward, after, float(done)))
        state = after
        steps += 1
        if len(memory) >= 500:
            s, act, r, s2, d = zip(*random.sample(memory, BATCH))
            q = q_net(torch.stack(s)).gather(1, torch.tensor(act)[:, None]).squeeze(1)
            with torch.no_grad():
                best = target_net(torch.stack(s2)).max(1).values
                goal = torch.tensor(r) + GAMMA * best * (1 - torch.tensor(d))
            loss = nn.functional.smooth_l1_loss(q, goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if steps % SYNC == 0:
                target_net.load_state_dict(q_net.state_dict())
    if episode % 26 == 25:
        print(f"episode {episode + 1} eps {epsilon:.2f} loss {loss.item():.4f} return {greedy_return():.3f}")
