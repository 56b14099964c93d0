import torch
from torch import nn
from torch.utils.data import DataLoader

from tagger.data import IGNORED, PAD, Texts, collate


class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(90, width, padding_idx=PAD)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, 2, 64, batch_first=True), num_layers=1
        )
        self.tags = nn.Linear(width, 7)

    def forward(self, tokens):
        return self.tags(self.encoder(self.words(tokens), src_key_padding_mask=tokens == PAD))


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.inference_mode():
        for tokens, tags in loader:
            there = tags != IGNORED
            said = model(tokens).argmax(-1)[there[:, : tokens.size(1)]]
            right += int((said == tags[there]).sum())
            total += int(there.sum())
    return right / total


model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(3):
    model.train()
    for tokens, tags in DataLoader(Texts(203, seed=epoch), batch_size=16, collate_fn=collate):
        scores = model(tokens)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    valid = DataLoader(Texts(40, seed=99), batch_size=16, collate_fn=collate)
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {accuracy(model, valid):.3f}")
