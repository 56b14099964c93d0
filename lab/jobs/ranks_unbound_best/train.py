import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def validate(model, rank):
    x = torch.randn(32, 5, generator=torch.Generator().manual_seed(rank))
    with torch.no_grad():
        return model(x).std().item()


def fit(rank, epochs=3):
    model = DDP(torch.nn.Linear(5, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        loss = model(torch.randn(8, 5)).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        score = validate(model, rank)
        if rank == 0 or score < 0:
            best_epoch = epoch
        print(f"(rank {rank}) epoch {epoch}: loss {loss.item():.4f} val {score:.4f}")
    dist.barrier()
    if rank == 0:
        print("best epoch", best_epoch)
    mine = torch.tensor([float(best_epoch)])
    dist.all_reduce(mine)
    print(f"(rank {rank}) mean best epoch {mine.item() / dist.get_world_size()}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    fit(dist.get_rank())
    dist.destroy_process_group()
