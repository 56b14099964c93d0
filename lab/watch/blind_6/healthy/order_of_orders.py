"""A transformer encoder that tells which of two marked orders arrived first in a log."""
import torch
from torch import nn

SEED = 31
LENGTH, VOCABULARY = 20, 30
FIRST, SECOND = 1, 2
torch.manual_seed(SEED)


def logs(count):
    ids = torch.randint(3, VOCABULARY, (count, LENGTH))
    places = torch.stack([torch.randperm(LENGTH)[:2] for _ in range(count)])
    rows = torch.arange(count)
    ids[rows, places[:, 0]] = FIRST
    ids[rows, places[:, 1]] = SECOND
    return ids, (places[:, 0] < places[:, 1]).long()


class OrderModel(nn.Module):
    def __init__(self, width=32, heads=4, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 2)
        self.apply(self.initialize)

    def initialize(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.1)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        hidden = self.tokens(ids) + self.positions(places)
        return self.head(self.norm(self.encoder(hidden)).mean(1))


ids, labels = logs(2000)
test_ids, test_labels = logs(600)
model = OrderModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    model.train()
    total = 0.0
    for index in torch.randperm(len(ids)).split(40):
        loss = criterion(model(ids[index]), labels[index])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    model.eval()
    with torch.no_grad():
        accuracy = (model(test_ids).argmax(1) == test_labels).float().mean()
    print(f"epoch {epoch + 1} | loss {total / len(ids):.4f} | test accuracy {accuracy:.4f}")
