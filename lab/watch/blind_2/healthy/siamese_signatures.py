"""Verifies signatures with a siamese network and CosineEmbeddingLoss; half of the pairs are forgeries, the loss has a floor."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(29)
WRITERS, DIM = 60, 48
basis = torch.randn(8, DIM)
hands = torch.randn(WRITERS, 8) @ basis
paper = torch.randn(12, DIM) * 1.2


def sign(writer):
    """The hand of a writer on paper of a random pattern."""
    return hands[writer] / 2.8 + torch.randn(12) @ paper / 3 + 0.2 * torch.randn(DIM)


class SignaturePairs(Dataset):
    def __init__(self, writers, n):
        self.pairs = []
        for k in range(n):
            a = writers[int(torch.randint(len(writers), ()))]
            b = a
            while k % 2 and b == a:
                b = writers[int(torch.randint(len(writers), ()))]
            self.pairs.append((sign(a), sign(b), 1 if a == b else -1))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 96), nn.ReLU(), nn.Linear(96, 24))

    def forward(self, a, b):
        return self.net(a), self.net(b)


def verification_accuracy(model, loader):
    model.eval()
    sims, same = [], []
    with torch.no_grad():
        for a, b, target in loader:
            sims.append(torch.cosine_similarity(*model(a, b)))
            same.append(target == 1)
    sims, same = torch.cat(sims), torch.cat(same)
    return max(((sims > t) == same).float().mean().item() for t in torch.linspace(-0.9, 0.999, 60))


everyone = list(range(WRITERS))
train_loader = DataLoader(SignaturePairs(everyone[:45], 3000), batch_size=64, shuffle=True)
val_loader = DataLoader(SignaturePairs(everyone[45:], 600), batch_size=600)
model = Embedder()
criterion = nn.CosineEmbeddingLoss(margin=0.2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
for epoch in range(1, 16):
    model.train()
    running = 0.0
    for a, b, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(*model(a, b), target)
        loss.backward()
        optimizer.step()
        running += loss.item()
    if epoch % 3 == 0:
        print(f"epoch {epoch} loss {running / len(train_loader):.4f} val_acc {verification_accuracy(model, val_loader):.4f}")
