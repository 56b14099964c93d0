"""Evolution instead of gradients: a small network keeps a pole upright; no loss is differentiated."""

import torch
from torch import nn

SEED = 47
torch.manual_seed(SEED)
policy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).requires_grad_(False)
shapes = [parameter.shape for parameter in policy.parameters()]
sizes = [shape.numel() for shape in shapes]


def push(weights, state):
    w1, b1, w2, b2 = (part.view(len(weights), *shape) for part, shape in zip(weights.split(sizes, 1), shapes, strict=True))
    hidden = torch.tanh(torch.einsum("phi,pi->ph", w1, state) + b1)
    return (torch.einsum("poh,ph->po", w2, hidden) + b2).squeeze(1).clamp(-3, 3)


def upright(weights):
    angle, speed = torch.rand(len(weights)) * 0.4 - 0.2, torch.zeros(len(weights))
    alive, total = torch.ones(len(weights)), torch.zeros(len(weights))
    for _ in range(60):
        force = push(weights, torch.stack([angle, speed], 1))
        speed = speed + 0.1 * (4 * torch.sin(angle) - force + 0.3 * torch.randn(len(weights)))
        angle = angle + 0.1 * speed
        alive = alive * (angle.abs() < 0.6)
        total = total + alive
    return total


centre = nn.utils.parameters_to_vector(policy.parameters())
for generation in range(60):
    noise = torch.randn(40, len(centre))
    noise = torch.cat([noise, -noise])
    score = upright(centre + 0.1 * noise)
    centre = centre + 0.02 / 0.1 * ((score - score.mean()) / (score.std() + 1e-6)) @ noise / len(noise) * 4
    if generation % 10 == 9:
        nn.utils.vector_to_parameters(centre, policy.parameters())
        print(f"generation {generation} population {score.mean():.2f} steps upright {upright(centre.repeat(50, 1)).mean():.2f}")
