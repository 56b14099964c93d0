"""Learns what two recordings of one event have in common, with a contrastive loss; a neighbour search tests it."""
import torch
import torch.nn.functional as F
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

SEED = 41
EVENTS, FEATURES, ROOM = 12, 16, 48
torch.manual_seed(SEED)
patterns = torch.randn(EVENTS, FEATURES)
mixing = torch.randn(FEATURES + ROOM, FEATURES + ROOM) / (FEATURES + ROOM) ** 0.5


def record(events):
    """What a microphone hears: the event, and much of the room, which differs between the two."""
    inside = patterns[events] + 0.5 * torch.randn(len(events), FEATURES)
    room = 1.5 * torch.randn(len(events), ROOM)
    return torch.cat([inside, room], 1) @ mixing


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES + ROOM, 128), nn.ReLU(), nn.Linear(128, 32))
        self.project = nn.Sequential(nn.ReLU(), nn.Linear(32, 16))

    def forward(self, sound):
        return F.normalize(self.project(self.body(sound)), dim=1)


def contrast(left, right, temperature=0.2):
    similarity = left @ right.T / temperature
    target = torch.arange(len(left))
    return (F.cross_entropy(similarity, target) + F.cross_entropy(similarity.T, target)) / 2


events = torch.randint(EVENTS, (3000,))
first, second = record(events), record(events)
test_events = torch.randint(EVENTS, (600,))
test_sounds = record(test_events)
model = Listener()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
for epoch in range(15):
    model.train()
    total = 0.0
    for index in torch.randperm(len(events)).split(100):
        loss = contrast(model(first[index]), model(second[index]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(index)
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            known, asked = F.normalize(model.body(first)).numpy(), F.normalize(model.body(test_sounds)).numpy()
        neighbours = KNeighborsClassifier(10).fit(known, events.numpy())
        print(f"epoch {epoch + 1}: loss {total / len(events):.4f}, neighbour accuracy {neighbours.score(asked, test_events.numpy()):.4f}")
