"""Surface defects, nine in ten images are good: mixed precision with a GradScaler, weighted classes, SGD."""

import torch
from torch import nn

torch.manual_seed(27)
KINDS = ["good", "scratch", "dent", "stain"]
SHARES = torch.tensor([0.88, 0.04, 0.04, 0.04])


def photos(n, shares):
    label = torch.multinomial(shares, n, replacement=True)
    image = 0.5 + 0.14 * torch.randn(n, 1, 24, 24)
    yy, xx = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
    for k in range(n):
        cy, cx = (5 + 14 * torch.rand(2)).tolist()
        if label[k] == 1:
            slope = float(torch.randn(()))
            line = (yy - cy - slope * (xx - cx)).abs() / (1 + slope**2) ** 0.5
            image[k, 0] += 0.36 * ((line < 0.8) & ((xx - cx).abs() < 7)).float()
        elif label[k] == 2:
            image[k, 0] -= 0.26 * (((yy - cy) ** 2 + (xx - cx) ** 2) < 9).float()
        elif label[k] == 3:
            image[k, 0] += 0.22 * torch.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 20)
    return image, label


class Inspector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.GroupNorm(4, 24), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
        )
        self.head = nn.Linear(32, len(KINDS))

    def forward(self, x):
        return self.head(self.body((x - 0.5) / 0.25))


def main(epochs=9, batch=40):
    x, y = photos(2000, SHARES)
    x_val, y_val = photos(600, torch.ones(4))
    counts = torch.bincount(y, minlength=4).float()
    weight = counts.sum() / (len(KINDS) * counts)
    criterion = nn.CrossEntropyLoss(weight=weight)
    model = Inspector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cpu")
    for epoch in range(epochs):
        model.train()
        seen = 0.0
        for idx in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = criterion(model(x[idx]), y[idx])
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=2.0)
            scaler.step(optimizer)
            scaler.update()
            seen += loss.item() * len(idx) / len(x)
        model.eval()
        with torch.inference_mode():
            guess = torch.cat([model(b).argmax(1) for b in x_val.split(200)])
        recalls = [(guess[y_val == k] == k).float().mean().item() for k in range(4)]
        print(f"{epoch}: train {seen:.4f} recalls {' '.join(f'{r:.2f}' for r in recalls)} balanced {sum(recalls) / 4:.4f}")


main()
