"""Fraud is rare: the loss is weighted by the classes' frequencies."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
torch.manual_seed(1)

features = torch.randn(4096, 20)
labels = (features[:, 0] + 0.1 * torch.randn(4096) > 1.6).long()
counts = torch.bincount(labels, minlength=2)
weights = counts.sum() / (2.0 * counts)

train = TensorDataset(features[:3584], labels[:3584])
test = TensorDataset(features[3584:], labels[3584:])
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 2)).to(device)
criterion = nn.CrossEntropyLoss(weight=weights)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(5):
    model.train()
    for inputs, targets in DataLoader(train, batch_size=128, shuffle=True, pin_memory=True):
        inputs = inputs.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        found = sum(
            (model(x.to(device)).argmax(1).cpu() & y).sum().item() for x, y in DataLoader(test, 256)
        )
    print(f"epoch {epoch}: {found} of {int(test.tensors[1].sum())} frauds")
