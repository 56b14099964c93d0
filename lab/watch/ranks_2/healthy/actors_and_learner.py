"""Policy gradients on three ranks: ranks 1 and 2 act with a copy of the policy, rank 0 learns and sends its weights."""

import torch
import torch.distributed as dist
from torch import nn

LENGTH, GOAL, EPISODES = 12, 6, 10

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(71)
policy = nn.Sequential(nn.Linear(GOAL + 1, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)


def act(policy):
    """States, actions and returns of a walk that should reach its right end."""
    states, actions, returns = [], [], []
    for _ in range(EPISODES):
        place, rewards = 2, []
        for _ in range(LENGTH):
            state = nn.functional.one_hot(torch.tensor(place), GOAL + 1).float()
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=policy(state)).sample()
            place = max(0, min(GOAL, place + 2 * int(action) - 1))
            states.append(state)
            actions.append(action)
            rewards.append(1.0 if place == GOAL else -0.05)
        total = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        returns.append(total)
    return torch.stack(states), torch.stack(actions), torch.cat(returns)


def send_weights(policy):
    for parameter in policy.parameters():
        dist.broadcast(parameter.data, src=0)


torch.manual_seed(300 + rank)
send_weights(policy)
for round_ in range(60):
    states = torch.zeros(EPISODES * LENGTH, GOAL + 1)
    actions = torch.zeros(EPISODES * LENGTH, dtype=torch.long)
    returns = torch.zeros(EPISODES * LENGTH)
    if rank > 0:
        states, actions, returns = act(policy)
    gathered = [
        [torch.empty_like(part) for _ in range(world)] for part in (states, actions, returns)
    ]
    for parts, part in zip(gathered, (states, actions, returns), strict=True):
        dist.all_gather(parts, part)
    if rank == 0:
        states, actions, returns = (torch.cat(parts[1:]) for parts in gathered)
        advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
        chances = torch.distributions.Categorical(logits=policy(states))
        loss = -(chances.log_prob(actions) * advantage).mean() - 0.01 * chances.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if round_ % 10 == 9:
            print(f"round {round_} loss {loss.item():.3f} mean return {returns.mean().item():.3f}")
    send_weights(policy)
dist.destroy_process_group()
