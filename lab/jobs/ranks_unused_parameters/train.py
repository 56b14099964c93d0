"""Two-headed model; the auxiliary head is trained on some ranks only."""
import logging
import torch
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("multitask")


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 40), nn.ReLU())
        self.main_head = nn.Linear(40, 5)
        self.aux_head = nn.Linear(40, 2)

    def forward(self, x, with_aux):
        h = self.body(x)
        return self.main_head(h), self.aux_head(h) if with_aux else None


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level="INFO", format=f"%(asctime)s [rank {rank}] %(message)s")
    torch.manual_seed(0)
    model = DistributedDataParallel(MultiTask())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        x, y, z = torch.randn(8, 20), torch.randint(5, (8,)), torch.randint(2, (8,))
        main_out, aux_out = model(x, with_aux=rank != 1)
        loss = nn.functional.cross_entropy(main_out, y)
        if aux_out is not None:
            loss = loss + 0.3 * nn.functional.cross_entropy(aux_out, z)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.info("step %d: %.4f", step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
