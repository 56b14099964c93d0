"""Sparse signals: eight of 120 markers decide about a trait, few subjects."""
import torch
from torch import nn

torch.manual_seed(21)
torch.set_num_threads(1)

SUBJECTS, MARKERS, ACTIVE = 100, 120, 8
truth = torch.zeros(MARKERS, 1)
truth[torch.randperm(MARKERS)[:ACTIVE]] = torch.randn(ACTIVE, 1).sign() * 1.5
x_train, x_test = torch.randn(SUBJECTS, MARKERS), torch.randn(400, MARKERS)
y_train = x_train @ truth + 0.5 * torch.randn(SUBJECTS, 1)
y_test = x_test @ truth + 0.5 * torch.randn(400, 1)

model = nn.Sequential(nn.Linear(MARKERS, 32), nn.Tanh(), nn.Linear(32, 1))
model = nn.ModuleDict({"direct": nn.Linear(MARKERS, 1), "mixed": model})
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def predict(x):
    return model["direct"](x) + model["mixed"](x)


def penalty():
    return sum(p.abs().sum() for name, p in model.named_parameters() if "bias" in name)


for epoch in range(1, 301):
    for batch in torch.randperm(SUBJECTS).split(25):
        error = ((predict(x_train[batch]) - y_train[batch]) ** 2).mean()
        loss = error + 0.05 * penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 20 == 0:
        with torch.no_grad():
            train_mse = ((predict(x_train) - y_train) ** 2).mean().item()
            test_mse = ((predict(x_test) - y_test) ** 2).mean().item()
        print(f"epoch {epoch:3d} loss {loss.item():.3f} train mse {train_mse:.3f} test mse {test_mse:.3f}")
