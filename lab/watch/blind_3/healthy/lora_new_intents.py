"""A small text encoder, pre-trained to find the topic, is adapted to intents by low-rank updates; the base weights stay frozen."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(41)
VOCAB, LENGTH = 150, 14
TOPIC_WORDS = torch.randperm(VOCAB - 10)[:96].view(8, 12) + 10


def topics(n):
    label = torch.randint(8, (n,))
    ids = torch.randint(10, VOCAB, (n, LENGTH))
    for place in torch.rand(n, LENGTH).topk(4).indices.T:
        ids[torch.arange(n), place] = TOPIC_WORDS[label, torch.randint(12, (n,))]
    return ids, label


def intents(n):
    """Which of two topics comes in the first half of the text, for three pairs of topics."""
    label = torch.randint(6, (n,))
    pair, turned = label // 2, (label % 2).bool()
    ids = torch.randint(10, VOCAB, (n, LENGTH))
    half = LENGTH // 2
    places = torch.cat([torch.rand(n, half).topk(2).indices, half + torch.rand(n, half).topk(2).indices], 1)
    for k in range(4):
        early = torch.tensor(k < 2).expand(n) ^ turned
        topic = 2 * pair + early.long()
        ids[torch.arange(n), places[:, k]] = TOPIC_WORDS[topic, torch.randint(12, (n,))]
    return ids, label


class Layer(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.out = nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        n, t, d = x.shape
        h = self.norm1(x)
        q, k, v = (f(h).view(n, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self, classes, dim=48):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim)
        self.places = nn.Parameter(0.2 * torch.randn(LENGTH, dim))
        self.layers = nn.ModuleList([Layer(dim), Layer(dim)])
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        h = self.words(ids) + self.places
        for layer in self.layers:
            h = layer(h)
        return self.head(h.mean(1))


class LoRA(nn.Module):
    def __init__(self, base, rank=8, alpha=16):
        super().__init__()
        self.base = base
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.T @ self.b.T)


def add_lora(model):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for layer in model.layers:
        for name in ("query", "key", "value", "up", "down"):
            setattr(layer, name, LoRA(getattr(layer, name)))
    return model


def train(model, make, optimizer, steps, name):
    x_val, y_val = make(600)
    for step in range(1, steps + 1):
        model.train()
        x, y = make(48)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                acc = (model(x_val).argmax(1) == y_val).float().mean().item()
            print(f"{name} step {step} loss {loss.item():.4f} {name}_acc {acc:.4f}")


model = Encoder(8)
train(model, topics, torch.optim.AdamW(model.parameters(), lr=2e-3), 200, "topic")
model = add_lora(model)
model.head = nn.Linear(48, 6)
trainable = [p for p in model.parameters() if p.requires_grad]
train(model, intents, torch.optim.AdamW(trainable, lr=3e-3), 500, "intent")
