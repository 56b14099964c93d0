"""Self-supervised digits without negatives (SimSiam): the loss is a negative cosine and falls toward -1.

Should reach: linear probe accuracy of at least 0.94 on frozen features; an untrained encoder gives 0.88.
"""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(38)
data = load_digits()
images = torch.tensor(data.images).float().unsqueeze(1) / 16
labels = torch.tensor(data.target)
order = torch.randperm(len(images))
train, val = order[:1400], order[1400:]


def view(x):
    x = F.pad(x, (1, 1, 1, 1))
    r, c = torch.randint(0, 3, (2,)).tolist()
    x = x[:, :, r : r + 8, c : c + 8]
    keep = (torch.rand(len(x), 1, 4, 4) > 0.15).float()
    return x * F.interpolate(keep, scale_factor=2) + 0.1 * torch.randn_like(x)


encoder = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
    nn.Flatten(), nn.Linear(1024, 96), nn.BatchNorm1d(96),
)  # fmt: skip
predictor = nn.Sequential(nn.Linear(96, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 96))
optimizer = torch.optim.SGD([*encoder.parameters(), *predictor.parameters()], lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(12):
    encoder.train()
    total = 0.0
    for rows in train[torch.randperm(len(train))].split(100):
        z1, z2 = encoder(view(images[rows])), encoder(view(images[rows]))
        p1, p2 = predictor(z1), predictor(z2)
        loss = -(F.cosine_similarity(p1, z2.detach()).mean() + F.cosine_similarity(p2, z1.detach()).mean()) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    print(f"epoch {epoch + 1} loss {total / 14:.4f}")

encoder.eval().requires_grad_(False)
probe = nn.Linear(96, 10)
optimizer = torch.optim.Adam(probe.parameters(), lr=1e-2)
features, val_features = encoder(images[train]), encoder(images[val])
for epoch in range(15):
    for rows in torch.randperm(len(train)).split(100):
        loss = F.cross_entropy(probe(features[rows]), labels[train][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (probe(val_features).argmax(1) == labels[val]).float().mean()
    print(f"probe epoch {epoch + 1} loss {loss.item():.4f} linear probe accuracy {accuracy:.4f}")
