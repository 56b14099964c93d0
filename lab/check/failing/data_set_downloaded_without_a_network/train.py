import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torchvision import datasets, transforms


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):
        return self.classifier(self.features(x))


def loaders(args):
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.13,), (0.31,))])
    training = datasets.MNIST("mnist", train=True, download=True, transform=transform)
    testing = datasets.MNIST("mnist", train=False, transform=transform)
    make = torch.utils.data.DataLoader
    return (
        make(training, batch_size=args.batch_size, shuffle=True, num_workers=2),
        make(testing, batch_size=1000, num_workers=2),
    )


def main():
    parser = argparse.ArgumentParser(description="Handwritten digits")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--save-model", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, test_loader = loaders(args)
    model = Digits().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for data, target in test_loader:
                right += (model(data.to(device)).argmax(1).cpu() == target).sum().item()
        print(f"epoch {epoch}: {right / len(test_loader.dataset):.4f}")
        scheduler.step()
    if args.save_model:
        torch.save(model.state_dict(), "digits.pt")


if __name__ == "__main__":
    main()
