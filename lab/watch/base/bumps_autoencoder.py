"""A convolutional autoencoder of images with one bright bump. Val mse reaches about 0.001; the mean image gives 0.05."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(11)

SIZE = 12


def bumps(count):
    grid = torch.arange(SIZE).float()
    centers = torch.rand(count, 2) * (SIZE - 4) + 2
    width = torch.rand(count, 1, 1) * 1.5 + 1.0
    rows = (grid[None, :, None] - centers[:, 0, None, None]) ** 2
    columns = (grid[None, None, :] - centers[:, 1, None, None]) ** 2
    images = torch.exp(-(rows + columns) / (2 * width**2))
    return images.unsqueeze(1)


class Encoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.project = nn.Linear(16 * 3 * 3, latent)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        return self.project(x.flatten(1))


class Decoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.expand = nn.Linear(latent, 16 * 3 * 3)
        self.up1 = nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)
        self.up2 = nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1)

    def forward(self, code):
        x = torch.relu(self.expand(code)).view(-1, 16, 3, 3)
        x = torch.relu(self.up1(x))
        return self.up2(x)


class Autoencoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.encoder = Encoder(latent)
        self.decoder = Decoder(latent)

    def forward(self, x):
        return self.decoder(self.encoder(x))


train, val = bumps(1500), bumps(300)
model = Autoencoder(latent=8)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
mse = nn.MSELoss()

for epoch in range(1, 16):
    model.train()
    for batch in train[torch.randperm(len(train))].split(50):
        optimizer.zero_grad()
        loss = mse(model(batch), batch)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = mse(model(val), val)
    print(f"Epoch {epoch:2d} | train loss {loss.item():.5f} | val mse {error.item():.5f}")
