"""Digits with a small CNN under bfloat16 autocast on the CPU; gradients are clipped and the rate is reduced on plateaus."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim

torch.manual_seed(41)
images, labels = load_digits(return_X_y=True)
x_tr, x_te, y_tr, y_te = train_test_split(images, labels, test_size=0.25, random_state=0, stratify=labels)
to_tensor = lambda a: torch.tensor(a / 16.0, dtype=torch.float32).reshape(-1, 1, 8, 8)
x_tr, x_te = to_tensor(x_tr), to_tensor(x_te)
y_tr, y_te = torch.tensor(y_tr), torch.tensor(y_te)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(512, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        x = F.relu(self.fc1(x))
        return self.fc2(x)


def test(model):
    model.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(x_te)
        return F.cross_entropy(output, y_te).item(), (output.argmax(1) == y_te).float().mean().item()


model = Net()
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.3, patience=1)
for epoch in range(1, 11):
    model.train()
    for idx in torch.randperm(len(x_tr)).split(32):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(x_tr[idx])
            loss = F.cross_entropy(output, y_tr[idx])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=2.0)
        optimizer.step()
    test_loss, acc = test(model)
    scheduler.step(test_loss)
    print(f"Epoch {epoch}: loss {loss.item():.4f} test loss {test_loss:.4f} test accuracy {acc:.4f}")
