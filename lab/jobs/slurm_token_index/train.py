import logging
import os

import torch
import torch.distributed as dist
from torch import nn

VOCAB = 1000


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 16)
        self.head = nn.Linear(16, VOCAB)

    def forward(self, ids):
        return self.head(self.embed(ids))


def tokens(rank, step):
    g = torch.Generator().manual_seed(17 * rank + step)
    ids = torch.randint(0, VOCAB, (4, 33), generator=g)
    if rank == 3 and step >= 5:
        ids[0, 7] = VOCAB               # written by a newer tokenizer
    return ids


dist.init_process_group("gloo")
rank = dist.get_rank()
logging.basicConfig(level=logging.INFO, format="%(asctime)s INFO %(message)s")
model = nn.parallel.DistributedDataParallel(LanguageModel())
optimizer = torch.optim.AdamW(model.parameters())
for step in range(12):
    ids = tokens(rank, step)
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 2 == 0:
        logging.info("job %s step %d loss %.3f", os.environ["SLURM_JOB_ID"], step, loss.item())
dist.destroy_process_group()
