"""Adversarial features: a reversed gradient keeps the country of a sensor out of what the model learns."""
import torch
from torch import nn

SEED = 149
torch.manual_seed(SEED)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


pattern = torch.randn(4, 12)
offset = torch.randn(12) * 1.5


def sensors(count, country):
    label = torch.randint(4, (count,))
    return pattern[label] + country * offset + torch.randn(count, 12), label


home_x, home_y = sensors(1500, 0)
away_x, _ = sensors(1500, 1)
test_x, test_y = sensors(800, 1)
features = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
task, country = nn.Linear(32, 4), nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
parts = nn.ModuleList([features, task, country])
optimizer = torch.optim.Adam(parts.parameters(), lr=1e-3)
truth = torch.cat([torch.zeros(50), torch.ones(50)])
for epoch in range(16):
    strength = 2 / (1 + torch.tensor(-5.0 * epoch / 15).exp()) - 1
    for home, away in zip(torch.randperm(1500).split(50), torch.randperm(1500).split(50)):
        hidden = features(torch.cat([home_x[home], away_x[away]]))
        task_loss = nn.functional.cross_entropy(task(hidden[:50]), home_y[home])
        guess = country(Reverse.apply(hidden, strength)).squeeze(1)
        country_loss = nn.functional.binary_cross_entropy_with_logits(guess, truth)
        optimizer.zero_grad()
        (task_loss + country_loss).backward()
        optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            accuracy = (task(features(test_x)).argmax(1) == test_y).float().mean()
        print(f"epoch {epoch + 1}: task {task_loss:.4f}, country {country_loss:.4f}, accuracy abroad {accuracy:.4f}")
