"""Opinions from sentences, with word vectors that came from elsewhere and stay as they are; only the layers above are trained.

Should reach: val accuracy of at least 0.8; the larger class gives about 0.5.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(67)
torch.set_num_threads(1)
WORDS, DIM, LENGTH = 500, 32, 20

vectors = torch.randn(WORDS, DIM)
direction = torch.randn(DIM) / DIM**0.5
lengths_of = torch.randint(5, LENGTH + 1, (4500,))
tokens = torch.randint(1, WORDS, (4500, LENGTH))
tokens[torch.arange(LENGTH)[None] >= lengths_of[:, None]] = 0
vectors[0] = 0
strength = (vectors @ direction).clamp(min=0.8) - 0.8 - ((-vectors @ direction).clamp(min=0.8) - 0.8)
score = strength[tokens].sum(1)
labels = (score + 0.3 * torch.randn(4500) > 0).float()


class Opinion(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=True, padding_idx=0)
        self.conv = nn.Conv1d(DIM, 48, 1)
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(48, 1)

    def forward(self, tokens):
        x = torch.relu(self.conv(self.embedding(tokens).transpose(1, 2)))
        x = (x * (tokens > 0).unsqueeze(1)).sum(2) / 10
        return self.out(self.dropout(x)).squeeze(1)


model = Opinion()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.4)
criterion = nn.BCEWithLogitsLoss()
loader = DataLoader(TensorDataset(tokens[:3800], labels[:3800]), batch_size=50, shuffle=True)
for epoch in range(9):
    model.train()
    total = 0.0
    for batch, opinion in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch), opinion)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        logits = model(tokens[3800:])
    accuracy = ((logits > 0) == (labels[3800:] > 0.5)).float().mean()
    print(f"epoch {epoch + 1} loss {total / len(loader):.4f} val loss {criterion(logits, labels[3800:]):.4f} val accuracy {accuracy:.4f}")
