"""Resumes a training from its checkpoint to go on with the streets that were surveyed later."""
import torch
from torch import nn

SEED = 127
torch.manual_seed(SEED)
weights = torch.randn(4, 10)


def streets(count, district):
    x = torch.randn(count, 10) + 0.5 * district
    noise = torch.sin(2 * x @ weights[0]) + (x @ weights[1 + district]).tanh() * 2
    return x, noise[:, None] + 0.1 * torch.randn(count, 1)


def network():
    return nn.Sequential(nn.Linear(10, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 1))


def run(model, optimizer, data, first, last, shrink):
    x, y = data
    for epoch in range(first, last):
        total = 0.0
        for index in torch.randperm(len(x)).split(32):
            loss = nn.functional.mse_loss(model(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1}: rate {optimizer.param_groups[0]['lr']:.1e}, loss {total / len(x):.4f}")
        for group in optimizer.param_groups:
            group["lr"] *= shrink


def save(model, optimizer, epoch):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "last.pt")


def resume(lr):
    """The model and the moments of the optimizer as they were stored, with a rate of its own."""
    stored = torch.load("last.pt")
    model = network()
    model.load_state_dict(stored["model"])
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    optimizer.load_state_dict(stored["optimizer"])
    for group in optimizer.param_groups:
        group["lr"] = lr
    return model, optimizer, stored["epoch"]


model = network()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
run(model, optimizer, streets(1200, 0), 0, 9, shrink=0.4)
save(model, optimizer, 9)

model, optimizer, epoch = resume(lr=2e-3)
run(model, optimizer, streets(1600, 2), epoch, epoch + 12, shrink=0.8)
x, y = streets(800, 2)
with torch.no_grad():
    print(f"test rmse in the new streets: {nn.functional.mse_loss(model(x), y).sqrt():.4f}")
