import json

import torch
from torch import nn

config = json.loads(open("config.json").read())
print("Loaded config:")
print(json.dumps(config, indent=2))


class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        layer = nn.TransformerEncoderLayer(d_model, n_heads, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        return self.lm_head(self.encoder(self.embedding(ids)))


model = Encoder(**config["model"])
optimizer = torch.optim.AdamW(model.parameters(), lr=config["train"]["lr"])
for step in range(config["train"]["steps"]):
    ids = torch.randint(config["model"]["vocab_size"], (4, 33))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())
