"""Blood values of three groups of patients, a deep network with batch normalization."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(13)
GROUPS, VALUES = 3, 20
centers = torch.randn(GROUPS, VALUES)
offset, spread = torch.rand(VALUES) * 40 + 5, torch.rand(VALUES) * 10 + 1


def patients(count):
    group = torch.randint(0, GROUPS, (count,))
    values = centers[group] + 1.2 * torch.randn(count, VALUES)
    return TensorDataset(values * spread + offset, group)


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.BatchNorm1d(outputs, momentum=0.1)

    def forward(self, x):
        return torch.relu(self.norm(self.linear(x)))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(VALUES, 64), Block(64, 64), Block(64, 32))
        self.output = nn.Linear(32, GROUPS)

    def forward(self, x):
        return self.output(self.blocks(x))


train_loader = DataLoader(patients(1200), batch_size=64, shuffle=True)
val_loader = DataLoader(patients(400), batch_size=200)
model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)

for epoch in range(15):
    model.train()
    train_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    model.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for x, y in val_loader:
            output = model(x)
            val_loss += criterion(output, y).item() / len(val_loader)
            correct += (output.argmax(1) == y).sum().item()
    print(f"epoch {epoch + 1}: train {train_loss:.4f}, val loss {val_loss:.4f}, val accuracy {correct / 400:.3f}")
