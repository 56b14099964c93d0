import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.shape[-1] ** 0.5
        return scores.softmax(-1) @ self.value(x)


def main():
    model = nn.Sequential(nn.Embedding(1000, 64), Attention(64), nn.Linear(64, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, length in enumerate([2_000, 3_000, 1_000, 200_000, 2_000]):
        tokens = torch.randint(0, 1000, (1, length), device="cuda")
        loss = nn.functional.cross_entropy(model(tokens)[0], tokens[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


main()
