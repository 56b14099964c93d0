import argparse
import os
from dataclasses import asdict, dataclass, fields

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    teacher: str = "teacher.pt"
    temperature: float = 2.0
    alpha: float = 0.5
    steps: int = 300
    lr: float = 1e-3

    @classmethod
    def from_cli(cls):
        parser = argparse.ArgumentParser()
        for item in fields(cls):
            parser.add_argument(f"--{item.name}", type=type(item.default), default=item.default)
        return cls(**vars(parser.parse_args()))


def mlp(width):
    return nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, 5))


def batch(size=128):
    x = torch.randn(size, 20)
    return x, x[:, :5].argmax(1)


def train_teacher(path, steps):
    teacher = mlp(256)
    optimizer = torch.optim.Adam(teacher.parameters())
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(teacher(x), y).backward()
        optimizer.step()
    torch.save(teacher.state_dict(), path)
    return teacher


def load_teacher(config):
    if not os.path.exists(config.teacher):
        return train_teacher(config.teacher, config.steps)
    teacher = mlp(256)
    teacher.load_state_dict(torch.load(config.teacher))
    return teacher


def main():
    config = Config.from_cli()
    print(asdict(config))
    teacher = load_teacher(config).eval().requires_grad_(False)
    student = mlp(16)
    optimizer = torch.optim.Adam(student.parameters(), lr=config.lr)
    t = config.temperature
    for step in range(config.steps):
        x, y = batch()
        logits = student(x)
        soft = F.kl_div(F.log_softmax(logits / t, 1), F.softmax(teacher(x) / t, 1), reduction="batchmean")
        loss = config.alpha * t * t * soft + (1 - config.alpha) * F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not step % 100:
            print("step {step:5d} {loss:.4f}".format(step=step, loss=loss.item()))


if __name__ == "__main__":
    main()
