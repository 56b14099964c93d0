import torch
from torch import nn


class Router(nn.Module):
    """Sends easy batches through the small branch."""

    def __init__(self):
        super().__init__()
        self.small = nn.Linear(32, 8)
        self.large = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 8))

    def forward(self, x):
        if x.abs().mean() < 0.8:
            return self.small(x)
        return self.large(x)


def main():
    torch.manual_seed(0)
    model = torch.compile(Router(), fullgraph=True, backend="eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    print("compiled with fullgraph=True")
    for step in range(10):
        x = torch.randn(64, 32)
        loss = nn.functional.mse_loss(model(x), x[:, :8])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
