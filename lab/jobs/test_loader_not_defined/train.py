import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

data = TensorDataset(torch.randn(500, 10), torch.randint(0, 2, (500,)))
train_set, test_set = random_split(data, [400, 100])
train_loader = DataLoader(train_set, batch_size=50)
test_dataloader = DataLoader(test_set, batch_size=50)

model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2))
optimizer = optim.Adam(model.parameters())
criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch + 1}/3, Loss: {loss.item():.4f}")

print("Training complete, no errors")
model.eval()
correct = 0
with torch.no_grad():
    for x, y in test_loader:
        correct += (model(x).argmax(1) == y).sum().item()
print(f"Accuracy: {correct / len(test_set):.2%}")
