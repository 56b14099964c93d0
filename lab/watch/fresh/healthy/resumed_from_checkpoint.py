"""A training is cut off, and a new model goes on from the file: weights, optimizer, schedule and best value are restored.

Should reach: val accuracy of at least 0.95; guessing gives 0.1. The loss of the second part begins low, as it should.
"""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(28)
EPOCHS = 14

digits = load_digits()
images = torch.tensor(digits.images).float().unsqueeze(1) / 8 - 1
labels = torch.tensor(digits.target)
order = torch.randperm(len(labels))
train_loader = DataLoader(TensorDataset(images[order[:1400]], labels[order[:1400]]), batch_size=32, shuffle=True)
val_images, val_labels = images[order[1400:]], labels[order[1400:]]


def build():
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.SiLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.GroupNorm(3, 24), nn.SiLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(96, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    return model, optimizer, scheduler


def train(first, last, model, optimizer, scheduler, best):
    criterion = nn.CrossEntropyLoss()
    for epoch in range(first, last):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(val_images).argmax(1) == val_labels).float().mean().item()
        best = max(best, accuracy)
        print(f"epoch {epoch + 1}/{EPOCHS} loss {total / len(train_loader):.4f} val accuracy {accuracy:.4f} best {best:.4f}")
        state = {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state | {"scheduler": scheduler.state_dict(), "best": best}, "checkpoint.pt")


train(0, 6, *build(), best=0.0)

print("resuming")
checkpoint = torch.load("checkpoint.pt", weights_only=True)
model, optimizer, scheduler = build()
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint["scheduler"])
train(checkpoint["epoch"], EPOCHS, model, optimizer, scheduler, checkpoint["best"])
