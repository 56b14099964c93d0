"""Digits, read one at a time as they come from the scanner."""
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(4)
torch.set_num_threads(1)

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 8 - 1
labels = torch.tensor(digits.target)
order = torch.randperm(len(images))
train_rows, val_rows = order[:1300], order[1300:1700]


def block(before, after):
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(),
    )


model = nn.Sequential(
    block(1, 16),
    nn.MaxPool2d(2),
    block(16, 32),
    nn.MaxPool2d(2),
    block(32, 64),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)


def train_epoch():
    model.train()
    correct = 0
    for rows in train_rows[torch.randperm(len(train_rows))].split(50):
        logits = model(images[rows])
        loss = criterion(logits, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (logits.argmax(1) == labels[rows]).sum().item()
    return loss.item(), correct / len(train_rows)


@torch.no_grad()
def validate():
    model.eval()
    losses, correct = [], 0
    for row in val_rows:
        logits = model(images[row : row + 1])
        losses.append(criterion(logits, labels[row : row + 1]).item())
        correct += (logits.argmax(1) == labels[row]).sum().item()
    return sum(losses) / len(losses), correct / len(val_rows)


for epoch in range(8):
    loss, accuracy = train_epoch()
    val_loss, val_accuracy = validate()
    print(
        f"epoch {epoch} loss {loss:.4f} accuracy {accuracy:.4f} "
        f"val loss {val_loss:.4f} val accuracy {val_accuracy:.4f}"
    )
