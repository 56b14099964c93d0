"""The angle of a joint from where the hand is: two answers are right, so a mixture of Gaussians is learned.

Should reach: val negative log-likelihood below -1.2; one Gaussian for all gives about 1.8.
"""
import torch
from torch import nn
from torch.distributions import Categorical, MixtureSameFamily, Normal

torch.manual_seed(17)
torch.set_num_threads(1)


def arms(count):
    shoulder = torch.rand(count) * 1.5
    elbow = (torch.rand(count) * 2 + 0.3) * (torch.randint(2, (count,)) * 2 - 1)
    hand = torch.stack([shoulder.cos() + (shoulder + elbow).cos(), shoulder.sin() + (shoulder + elbow).sin()], 1)
    return hand + 0.02 * torch.randn(count, 2), elbow


class MixtureDensity(nn.Module):
    def __init__(self, components=4):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.weights = nn.Linear(64, components)
        self.means = nn.Linear(64, components)
        self.spreads = nn.Linear(64, components)
        self.means.bias.data = torch.linspace(-2, 2, components)

    def forward(self, hand):
        h = self.trunk(hand)
        parts = Normal(self.means(h), nn.functional.softplus(self.spreads(h)) + 1e-3)
        return MixtureSameFamily(Categorical(logits=self.weights(h)), parts)


hands, elbows = arms(6000)
val_hands, val_elbows = arms(1500)
model = MixtureDensity()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [10, 16], gamma=0.2)
for epoch in range(20):
    total = 0.0
    for rows in torch.randperm(len(hands)).split(100):
        loss = -model(hands[rows]).log_prob(elbows[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    with torch.no_grad():
        nll = -model(val_hands).log_prob(val_elbows).mean()
    print(f"epoch {epoch + 1} loss {total / 60:.3f} val negative log-likelihood {nll:.3f}")
