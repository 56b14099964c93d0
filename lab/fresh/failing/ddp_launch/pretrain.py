import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from options import options

VOCABULARY, LENGTH, MASK = 1000, 64, 0


class Masked(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(torch.zeros(1, LENGTH, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.encoder(self.tokens(tokens) + self.places))


def main():
    args = options()
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group(args.backend, init_method="env://")
    device = torch.device("cuda", args.local_rank)
    torch.manual_seed(dist.get_rank())
    model = DDP(Masked(args.width, args.depth).to(device), device_ids=[args.local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for step in range(args.steps):
        tokens = torch.randint(1, VOCABULARY, (args.batch, LENGTH), device=device)
        hidden = torch.rand(tokens.shape, device=device) < args.mask
        logits = model(tokens.masked_fill(hidden, MASK))
        loss = F.cross_entropy(logits[hidden], tokens[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 100 == 0:
            print(step, loss.item())
    if dist.get_rank() == 0:
        os.makedirs("/outputs/pretrain", exist_ok=True)
        torch.save(model.module.state_dict(), "/outputs/pretrain/last.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
