"""Cuts people out of portraits; mixed precision when --amp is given."""
import argparse

import torch
from torch import nn


class Matting(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(inplace=True),
        )
        self.alpha = nn.Conv2d(width, 1, 1)

    def forward(self, pictures):
        return torch.sigmoid(self.alpha(self.body(pictures)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    model = Matting().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    scaler = torch.amp.GradScaler("cuda", enabled=options.amp)
    criterion = nn.BCELoss()
    for epoch in range(options.epochs):
        for _ in range(50):
            pictures = torch.rand(8, 3, 64, 64, device="cuda")
            wanted = (pictures.mean(1, keepdim=True) > 0.5).float()
            with torch.autocast("cuda", dtype=torch.float16, enabled=options.amp):
                alpha = model(pictures)
                loss = criterion(alpha, wanted)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    torch.save(model.state_dict(), "matting.pt")


if __name__ == "__main__":
    main()
