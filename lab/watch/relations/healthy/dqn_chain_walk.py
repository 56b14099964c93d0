"""Deep Q-learning with a replay buffer and a target network: walk to the end of a chain against the wind."""

import random
from collections import deque

import torch
from torch import nn

random.seed(7)
torch.manual_seed(7)
LENGTH = 8


def encode(position):
    return torch.eye(LENGTH)[position]


def act(position, action):
    moved = position + (1 if action == 1 and random.random() < 0.9 else -1)
    position = min(max(moved, 0), LENGTH - 1)
    done = position == LENGTH - 1
    return position, 1.0 if done else -0.02, done


def network():
    return nn.Sequential(nn.Linear(LENGTH, 48), nn.ReLU(), nn.Linear(48, 2))


policy_net, target_net = network(), network()
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.Adam(policy_net.parameters(), lr=2e-3)
memory = deque(maxlen=2000)
epsilon, steps, rewards = 1.0, 0, []

for episode in range(60):
    position, total = 0, 0.0
    for _ in range(40):
        with torch.no_grad():
            values = policy_net(encode(position))
        action = random.randrange(2) if random.random() < epsilon else int(values.argmax())
        following, reward, done = act(position, action)
        memory.append((position, action, reward, following, done))
        position, total, steps = following, total + reward, steps + 1
        if len(memory) >= 64:
            batch = random.sample(memory, 32)
            state, move, gain, after, end = map(list, zip(*batch))
            q = policy_net(torch.stack([encode(s) for s in state]))
            q = q.gather(1, torch.tensor(move).unsqueeze(1)).squeeze(1)
            with torch.no_grad():
                best = target_net(torch.stack([encode(s) for s in after])).max(1).values
            expected = torch.tensor(gain) + 0.95 * best * (1 - torch.tensor(end).float())
            loss = nn.functional.smooth_l1_loss(q, expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if steps % 50 == 0:
            target_net.load_state_dict(policy_net.state_dict())
        if done:
            break
    epsilon = max(0.05, epsilon * 0.93)
    rewards.append(total)
    if episode % 10 == 9:
        print(f"episode {episode} mean reward {sum(rewards[-10:]) / 10:.3f}")
