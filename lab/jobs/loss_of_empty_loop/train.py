import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, loader, optimizer):
    for features, target in loader:
        loss = nn.functional.mse_loss(model(features), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = nn.Linear(7, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for fold, size in enumerate([300, 280, 60]):
        data = TensorDataset(torch.randn(size, 7), torch.randn(size, 1))
        loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
        for epoch in range(2):
            print(f"fold {fold} epoch {epoch} loss {train_epoch(model, loader, optimizer):.4f}")


if __name__ == "__main__":
    main()
