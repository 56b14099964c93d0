"""REINFORCE in a room of six by six cells: the parcel in the corner pays once, when it is reached."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(12)
SIZE, HORIZON, EPISODES = 6, 12, 64
STEPS = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


def rollout(policy, greedy=False):
    place = torch.randint(0, SIZE, (EPISODES, 2))
    parcel = torch.tensor([SIZE - 1, SIZE - 1])
    found = torch.zeros(EPISODES, dtype=torch.bool)
    log_probs, rewards, active = [], [], []
    for _ in range(HORIZON):
        view = F.one_hot(place[:, 0] * SIZE + place[:, 1], SIZE * SIZE).float()
        dist = Categorical(logits=policy(view))
        action = dist.probs.argmax(1) if greedy else dist.sample()
        active.append(~found)
        place = torch.where(found[:, None], place, (place + STEPS[action]).clamp(0, SIZE - 1))
        arrived = (place == parcel).all(1) & ~found
        found = found | arrived
        log_probs.append(dist.log_prob(action))
        rewards.append(arrived.float())
    return torch.stack(log_probs, 1), torch.stack(rewards, 1), torch.stack(active, 1).float()


def returns_of(rewards, gamma=0.95):
    out, running = [], torch.zeros(len(rewards))
    for t in reversed(range(HORIZON)):
        running = rewards[:, t] + gamma * running
        out.insert(0, running)
    return torch.stack(out, 1)


policy = nn.Sequential(nn.Linear(SIZE * SIZE, 64), nn.Tanh(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)

for update in range(1, 251):
    log_probs, rewards, active = rollout(policy)
    returns = returns_of(rewards)
    advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(log_probs * advantage * active).sum() / active.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 50 == 0:
        print(f"update {update} loss {loss.item():+.4f} found {rewards.sum(1).mean().item():.3f}")

with torch.no_grad():
    scores = [rollout(policy)[1].sum(1).mean().item() for _ in range(10)]
print(f"share of parcels found {sum(scores) / 10:.4f}")
