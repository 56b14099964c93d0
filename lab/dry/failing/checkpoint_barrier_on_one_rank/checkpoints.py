import torch
import torch.distributed as dist


def save(model, optimizer, step):
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, f"step-{step}.pt")
    dist.barrier()
