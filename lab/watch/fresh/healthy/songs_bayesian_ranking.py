"""Which song comes next for whom: pairs of a heard and an unheard song, embeddings for users and songs (BPR).

Should reach: val pair accuracy of at least 0.7; guessing gives 0.5.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(50)
USERS, SONGS, HEARD = 400, 300, 34
taste = torch.randn(USERS, 6) @ torch.randn(6, SONGS) + 0.5 * torch.randn(SONGS)
heard = torch.multinomial((taste * 0.7).exp(), HEARD)
train, val = heard[:, 4:], heard[:, :4]
unheard = torch.ones(USERS, SONGS).scatter(1, heard, 0)


class Ranking(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.user = nn.Embedding(USERS, dim)
        self.song = nn.Embedding(SONGS, dim)
        self.popularity = nn.Embedding(SONGS, 1)
        for table in (self.user, self.song):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.popularity.weight)

    def forward(self, users, songs):
        return (self.user(users) * self.song(songs)).sum(1) + self.popularity(songs).squeeze(1)


pairs = torch.stack([torch.arange(USERS).repeat_interleave(train.shape[1]), train.flatten()], 1)
loader = DataLoader(TensorDataset(pairs), batch_size=128, shuffle=True)
val_users = torch.arange(USERS).repeat_interleave(4)
val_other = torch.multinomial(unheard, 4).flatten()
model = Ranking()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 6, gamma=0.3)
for epoch in range(14):
    model.train()
    total = 0.0
    for (batch,) in loader:
        users, songs = batch.T
        others = torch.multinomial(unheard[users], 1).squeeze(1)
        loss = -F.logsigmoid(model(users, songs) - model(users, others)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        gap = model(val_users, val.flatten()) - model(val_users, val_other)
    print(f"epoch {epoch + 1} loss {total / len(loader):.4f} val loss {-F.logsigmoid(gap).mean():.4f} val pair accuracy {(gap > 0).float().mean():.4f}")
