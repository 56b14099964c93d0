"""A small CNN names the direction of arrows in noisy pictures with few strokes; labels of train have 5 % errors."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SIZE = 16


def draw(direction):
    img = torch.zeros(SIZE, SIZE)
    length = int(torch.randint(6, 10, ()))
    r, c = int(torch.randint(4, 12, ())), int(torch.randint(1, SIZE - length - 1, ()))
    img[r, c : c + length] = 1.0
    tip = c + length - 1
    for k in (1, 2, 3):
        img[r - k, tip - k] = img[r + k, tip - k] = 1.0
    return torch.rot90(img, direction)  # 0 right, 1 up, 2 left, 3 down


class Arrows(Dataset):
    def __init__(self, n, train, label_noise=0.0):
        self.labels = torch.randint(0, 4, (n,))
        self.images = torch.stack([draw(int(d)) for d in self.labels])
        self.images = self.images + 0.35 * torch.randn(n, SIZE, SIZE)
        self.train = train
        if label_noise:
            wrong = torch.rand(n) < label_noise
            self.labels[wrong] = torch.randint(0, 4, (int(wrong.sum()),))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.train:
            img = self.augment(img)
        return img[None], self.labels[i]

    def augment(self, img):
        shift = torch.randint(-1, 2, (2,)).tolist()
        img = torch.roll(img, shift, (0, 1))
        return img + 0.3 * torch.randn_like(img)


class ArrowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.fc = nn.Linear(24 * 16, 4)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def run():
    torch.manual_seed(19)
    train_loader = DataLoader(Arrows(1000, True, 0.05), batch_size=50, shuffle=True)
    val_loader = DataLoader(Arrows(500, False), batch_size=250)
    net = ArrowNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=5)
    for epoch in range(15):
        net.train()
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        net.eval()
        with torch.no_grad():
            correct = sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader)
        print(f"epoch {epoch:2d} lr {opt.param_groups[0]['lr']:.4f} loss {loss.item():.4f} val_acc {correct / 500:.4f}")


run()
