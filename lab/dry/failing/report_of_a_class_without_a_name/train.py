import torch
from torch import nn

NAMES = ["plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship"]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(90):
        for _ in range(500):
            x, y = torch.randn(32, 3, 16, 16), torch.randint(10, (32,))
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    right, count = torch.zeros(10), torch.zeros(10)
    with torch.no_grad():
        for _ in range(50):
            x, y = torch.randn(32, 3, 16, 16), torch.randint(10, (32,))
            hit = model(x).argmax(1) == y
            right.index_add_(0, y, hit.float())
            count.index_add_(0, y, torch.ones(32))
    for number in range(10):
        print(f"{NAMES[number]:8s} {right[number] / count[number]:.3f}")


if __name__ == "__main__":
    main()
