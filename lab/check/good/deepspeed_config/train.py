import argparse

import deepspeed
import torch
from torch import nn
from torch.utils.data import Dataset


class Copies(Dataset):
    def __init__(self, length=64, count=100_000):
        self.length, self.count = length, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(0, 512, (self.length,), generator=generator)
        return ids, ids.roll(-1)


class Model(nn.Module):
    def __init__(self, vocabulary=512, width=512, layers=6):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 8, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.head(self.body(self.embed(ids)))


def add_argument():
    parser = argparse.ArgumentParser(description="copies")
    parser.add_argument("--local_rank", type=int, default=-1, help="given by the launcher")
    parser.add_argument("--steps", type=int, default=1000)
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()


def main():
    args = add_argument()
    model = Model()
    parameters = filter(lambda p: p.requires_grad, model.parameters())
    engine, _, loader, _ = deepspeed.initialize(
        args=args, model=model, model_parameters=parameters, training_data=Copies()
    )
    for step, (ids, following) in enumerate(loader):
        logits = engine(ids.to(engine.device))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), following.to(engine.device).flatten())
        engine.backward(loss)
        engine.step()
        if engine.local_rank == 0 and step % 50 == 0:
            print(step, loss.item())
        if step >= args.steps:
            break
    engine.save_checkpoint("/scratch/alice/ds", tag="last")


if __name__ == "__main__":
    main()
