import torch
from torch import nn

STAGES = {0: 8, 10: 16, 20: 32, 30: 64}


class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 24)
        self.position = nn.Parameter(torch.randn(64, 24) * 0.02)
        self.layer = nn.TransformerEncoderLayer(24, 4, 48, batch_first=True, dropout=0.0)
        self.out = nn.Linear(24, 12)

    def forward(self, x):
        return self.out(self.layer(self.embed(x) + self.position[: x.shape[1]]))


def main():
    torch.manual_seed(0)
    model = Copier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    history = {}
    for epoch in range(40):
        if epoch in STAGES:
            length = STAGES[epoch]
            history[length] = []
        for _ in range(5):
            x = torch.randint(0, 12, (8, length))
            loss = nn.functional.cross_entropy(model(x).transpose(1, 2), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        history[length].append(loss.item())
    for length, losses in history.items():
        print(length, sum(losses) / len(losses))
    print("final", history[64][-1], "improved by", history[64][0] - min(history[64]))


if __name__ == "__main__":
    main()
