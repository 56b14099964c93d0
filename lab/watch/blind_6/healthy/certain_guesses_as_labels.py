"""Self-training: a model learns from few labels, then also from its own guesses where it is certain."""
import torch
from sklearn.datasets import load_digits
from torch import nn

SEED = 137
torch.manual_seed(SEED)
digits = load_digits()
order = torch.randperm(len(digits.target))
images = torch.tensor(digits.data / 16, dtype=torch.float32)[order]
labels = torch.tensor(digits.target)[order]
few_x, few_y = images[:100], labels[:100]
unlabeled = images[100:1300]
test_x, test_y = images[1300:], labels[1300:]


def fit(x, y, epochs):
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    for _ in range(epochs):
        model.train()
        total = 0.0
        for index in torch.randperm(len(x)).split(25):
            noisy = x[index] + 0.1 * torch.randn(len(index), 64)
            loss = nn.functional.cross_entropy(model(noisy), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
    return model.eval(), total / len(x)


@torch.no_grad()
def accuracy(model):
    return (model(test_x).argmax(1) == test_y).float().mean()


model, loss = fit(few_x, few_y, 40)
print(f"round 0: loss {loss:.4f}, accuracy {accuracy(model):.4f}")
for round_number, count in enumerate((400, 700, 1000), 1):
    with torch.no_grad():
        certainty, guesses = model(unlabeled).softmax(1).max(1)
    chosen = certainty.topk(count).indices
    x = torch.cat([few_x.repeat(3, 1), unlabeled[chosen]])
    y = torch.cat([few_y.repeat(3), guesses[chosen]])
    model, loss = fit(x, y, 14)
    print(f"round {round_number}: {count} guesses, loss {loss:.4f}, accuracy {accuracy(model):.4f}")
