import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
prototypes = torch.rand(10, 64)
labels = torch.randint(0, 10, (1797,))
digits = prototypes[labels] + 0.2 * torch.randn(1797, 64)
train_set, test_set = random_split(TensorDataset(digits, labels), [1500, 297])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True, num_workers=2)
test_loader = DataLoader(test_set, batch_size=64)

net = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10))
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)

if __name__ == "__main__":
    for epoch in range(8):
        net.train()
        running = 0.0
        for inputs, targets in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(inputs), targets)
            loss.backward()
            optimizer.step()
            running += loss.item()
        scheduler.step()
        net.eval()
        correct = 0
        with torch.no_grad():
            for inputs, targets in test_loader:
                correct += (net(inputs).argmax(1) == targets).sum().item()
        print(f"[{epoch + 1}] loss: {running / len(train_loader):.3f} accuracy: {correct / 297:.3f}")
    print("Finished Training")
