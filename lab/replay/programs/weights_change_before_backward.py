"""Two optimizers: from the end of the warm-up on, the second steps too early."""

import torch
from torch import nn

torch.set_num_threads(1)

actor, critic = nn.Linear(8, 4), nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 1))
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(600):
    state = torch.randn(32, 8)
    action = torch.tanh(actor(state))
    value = critic(torch.cat([state, action], 1))
    critic_loss = (value - state.sum(1, keepdim=True)).pow(2).mean()
    actor_loss = -value.mean()
    critic_optimizer.zero_grad()
    critic_loss.backward(retain_graph=True)
    critic_optimizer.step() if step >= 200 else None
    if step >= 200:
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
    if step % 50 == 0:
        print(step, critic_loss.item())
