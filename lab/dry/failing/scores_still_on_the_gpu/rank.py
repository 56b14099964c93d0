"""Learns to rank documents by pairs, and measures average precision after each epoch."""
import torch
from torch import nn

from metrics import average_precision

DEVICE = "cuda"


class Ranker(nn.Module):
    def __init__(self, features=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, documents):
        return self.layers(documents).squeeze(-1)


@torch.no_grad()
def validate(model, queries):
    values = []
    for documents, relevant in queries:
        scores = model(documents.to(DEVICE))
        values.append(average_precision(scores.numpy(), relevant.numpy()))
    return sum(values) / len(values)


def main():
    torch.manual_seed(0)
    queries = []
    for _ in range(200):
        documents = torch.randn(30, 16)
        queries.append((documents, (documents[:, :4].sum(1) > 1.5).float()))
    train, validation = queries[:160], queries[160:]
    model = Ranker().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for documents, relevant in train:
            scores, relevant = model(documents.to(DEVICE)), relevant.to(DEVICE)
            margins = scores[relevant == 1].unsqueeze(1) - scores[relevant == 0]
            loss = nn.functional.softplus(-margins).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {validate(model, validation):.3f}")


if __name__ == "__main__":
    main()
