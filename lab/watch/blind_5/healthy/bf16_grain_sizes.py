"""bfloat16 autocast and plain SGD: the size of grains from the counts of a sieve."""

import torch
from torch import nn

SEED = 8
torch.manual_seed(SEED)
mixing = torch.randn(20, 4)


def samples(count):
    size = torch.randint(5, (count,))
    centres = torch.stack([torch.cos(size * 1.257), torch.sin(size * 1.257), (size == 2) * 1.0, (size == 4) * 1.0], 1)
    return torch.tanh((centres + 0.35 * torch.randn(count, 4)) @ mixing.T), size


train_x, train_y = samples(3000)
test_x, test_y = samples(1000)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=5e-3)
for epoch in range(40):
    for index in torch.randperm(len(train_x)).split(64):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(train_x[index]), train_y[index])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(test_x).float()
        accuracy = (logits.argmax(1) == test_y).float().mean()
        print(f"epoch {epoch} test loss {nn.functional.cross_entropy(logits, test_y):.4f} accuracy {accuracy:.4f}")
