import json

import torch
import torch.distributed as dist
from torch import nn


def main():
    dist.init_process_group("gloo")
    settings = None
    if dist.get_rank() == 0:
        with open("settings.json") as file:
            settings = json.load(file)
    dist.barrier()
    model = nn.Linear(settings["inputs"], settings["outputs"])
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    print(dist.get_rank(), sum(p.numel() for p in model.parameters()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
