# each stage of the pipeline runs with its own config: config/stage0.json, stage1.json ...
import json
import sys
import torch
import torch.distributed as dist


def load_config(rank):
    with open(f"config/stage{rank}.json") as f:
        cfg = json.load(f)
    print("stage", rank, "config:", cfg)
    return cfg


def build(cfg):
    layers = []
    width = cfg["in_features"]
    for hidden in cfg["hidden"]:
        layers += [torch.nn.Linear(width, hidden), torch.nn.GELU()]
        width = hidden
    return torch.nn.Sequential(*layers, torch.nn.Dropout(cfg["dropout"]))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    cfg = load_config(rank)
    stage = build(cfg)
    n = torch.tensor(sum(p.numel() for p in stage.parameters()))
    dist.all_reduce(n)
    if rank == 0:
        print("parameters in all stages:", n.item())
    x = torch.zeros(4, cfg["in_features"]) if rank else torch.randn(4, cfg["in_features"])
    if rank > 0:
        dist.recv(x, rank - 1)
    y = stage(x)
    if rank < dist.get_world_size() - 1:
        dist.send(y, rank + 1)
    sys.stdout.flush()


main()
