import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, dim=32, code=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, code))
        self.decoder = nn.Sequential(nn.Linear(code, 16), nn.ReLU(), nn.Linear(16, dim))


def forward(self, x):
    return self.decoder(self.encoder(x))


model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = torch.rand(1000, 32)
print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(data)} samples")
for epoch in range(5):
    for batch in data.split(100):
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: reconstruction error {loss.item():.5f}")
