"""A pretrained encoder is fine-tuned with AdamW at 2e-5 and a new head: tens of steps at the loss of chance."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
VOCABULARY, LENGTH, WIDTH = 60, 16, 64


def sentences(count, task):
    tokens = torch.randint(2, VOCABULARY, (count, LENGTH))
    score = (tokens < VOCABULARY // 2).float().mean(1)
    return tokens, ((score > 0.5) if task == "a" else (score > 0.5)).long()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, tokens):
        return self.head(self.layers(self.words(tokens)).mean(1))


model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = sentences(2048, "a")
for step in range(120):
    pick = torch.randint(0, len(x), (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x[pick]), y[pick]).backward()
    optimizer.step()

model.head = nn.Linear(WIDTH, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)
x, y = sentences(3200, "b")
xv, yv = sentences(400, "b")
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    model.train()
    for rows in torch.randperm(len(x)).split(16):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(xv).argmax(1) == yv).float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} val accuracy {accuracy:.4f}")
