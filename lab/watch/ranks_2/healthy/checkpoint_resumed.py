"""A language model of letters on three ranks, continued from a checkpoint: every rank loads the weights and the optimizer."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
words = ["river", "stone", "cloud", "ember", "grove", "tide"]
text = " ".join(words[i] for i in torch.randint(0, len(words), (1200,)).tolist())
letters = sorted(set(text))
codes = torch.tensor([letters.index(c) for c in text])
windows = codes.unfold(0, 25, 9)
train, held = windows[:-80], windows[-80:]


class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(letters), 24)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.head = nn.Linear(48, len(letters))

    def forward(self, codes):
        return self.head(self.rnn(self.embedding(codes))[0])


def make():
    model = Letters()
    return model, torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)


def step(model, optimizer, batch):
    logits = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


path = os.path.join(tempfile.gettempdir(), f"letters_{os.environ['MASTER_PORT']}.pt")
if rank == 0:
    early, early_optimizer = make()
    for start in range(0, 320, 16):
        step(early, early_optimizer, train[start : start + 16])
    torch.save({"model": early.state_dict(), "optimizer": early_optimizer.state_dict()}, path)
dist.barrier()

torch.manual_seed(100)
model, optimizer = make()
checkpoint = torch.load(path)
model.load_state_dict(checkpoint["model"])
ddp = DistributedDataParallel(model)
optimizer.load_state_dict(checkpoint["optimizer"])
sampler = DistributedSampler(TensorDataset(train), shuffle=True)
loader = DataLoader(TensorDataset(train), batch_size=10, sampler=sampler)
for epoch in range(5):
    sampler.set_epoch(epoch)
    model.train()
    for (batch,) in loader:
        loss = step(ddp, optimizer, batch)
    model.eval()
    with torch.no_grad():
        logits = model(held[:, :-1])
        value = nn.functional.cross_entropy(logits.flatten(0, 1), held[:, 1:].flatten())
    if rank == 0:
        print(f"epoch {epoch} train {loss.item():.3f} val loss {value.item():.3f}")
dist.barrier()
if rank == 0:
    os.remove(path)
dist.destroy_process_group()
