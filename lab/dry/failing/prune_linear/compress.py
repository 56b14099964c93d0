import torch
from torch import nn
from torch.nn.utils import prune


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10),
    )


def finetune(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        x, y = torch.randn(16, 3, 16, 16), torch.randint(0, 10, (16,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = network()
    print("dense", finetune(model, 60))
    for share in (0.2, 0.4):
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                prune.ln_structured(module, "weight", amount=share, n=2, dim=0)
        print(share, finetune(model, 30))
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            prune.remove(module, "weight")
    torch.save(model.state_dict(), "pruned.pt")


main()
