"""Digits with Adadelta at a learning rate of 1.0, as in the first tutorials, with a step schedule."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(5)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train, test = order[:1400], order[1400:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3)
        self.drop1, self.drop2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(128, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = nn.functional.relu(self.conv2(nn.functional.relu(self.conv1(x))))
        x = self.drop1(nn.functional.max_pool2d(x, 2)).flatten(1)
        return nn.functional.log_softmax(self.fc2(self.drop2(nn.functional.relu(self.fc1(x)))), dim=1)


model = Net()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)
for epoch in range(6):
    model.train()
    for rows in train[torch.randperm(len(train))].split(32):
        optimizer.zero_grad()
        loss = nn.functional.nll_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        output = model(x[test])
        test_loss = nn.functional.nll_loss(output, y[test], reduction="sum").item() / len(test)
        accuracy = output.argmax(1).eq(y[test]).sum().item() / len(test)
    print(f"epoch {epoch} test loss {test_loss:.4f} test accuracy {accuracy:.4f}")
