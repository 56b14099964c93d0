"""Takes the noise out of photographs: the network predicts the noise, patches of one photo train it, another one validates.

Should reach: val PSNR of at least 23 dB; the noisy photo has about 20.
"""

import torch
from sklearn.datasets import load_sample_image
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(12)
NOISE, PATCH = 0.1, 16


class Patches(Dataset):
    def __init__(self, name, count):
        photo = torch.tensor(load_sample_image(name)).permute(2, 0, 1).float() / 255
        self.photo, self.count = photo, count

    def __len__(self):
        return self.count

    def __getitem__(self, _):
        top = torch.randint(self.photo.shape[1] - PATCH, ()).item()
        left = torch.randint(self.photo.shape[2] - PATCH, ()).item()
        clean = self.photo[:, top : top + PATCH, left : left + PATCH]
        if torch.rand(()) < 0.5:
            clean = clean.flip(2)
        return clean + NOISE * torch.randn_like(clean), clean


class Denoiser(nn.Module):
    def __init__(self, channels=16, depth=2):
        super().__init__()
        layers = [nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(inplace=True)]
        for _ in range(depth):
            layers += [nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
        layers.append(nn.Conv2d(channels, 3, 3, padding=1))
        self.noise = nn.Sequential(*layers)

    def forward(self, noisy):
        return noisy - self.noise(noisy)


train_loader = DataLoader(Patches("china.jpg", 2400), batch_size=16)
val_noisy, val_clean = next(iter(DataLoader(Patches("flower.jpg", 100), batch_size=100)))
model = Denoiser()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
print(f"noisy PSNR {-10 * torch.log10(criterion(val_noisy, val_clean)):.2f}")
for epoch in range(5):
    model.train()
    total = 0.0
    for noisy, clean in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(noisy), clean)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        error = criterion(model(val_noisy), val_clean)
    print(f"epoch {epoch + 1}/5  train mse {total / len(train_loader):.5f}  val PSNR {-10 * torch.log10(error):.2f}")
