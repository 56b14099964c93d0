import argparse
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Shape:
    inputs: int = 6
    hidden: int = 12
    outputs: int = 3


class Small(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(shape.inputs, shape.hidden), nn.BatchNorm1d(shape.hidden))
        self.head = nn.Linear(shape.hidden, shape.outputs)

    def forward(self, x):
        return self.head(self.body(x).relu())


class Large(Small):
    """The same body with another head."""

    def __init__(self, shape):
        super().__init__(shape)
        self.head = nn.Sequential(nn.Linear(shape.hidden, 20), nn.ReLU(), nn.Linear(20, shape.outputs))


def plain(model):
    return model.module if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)) else model


def strip(state, prefix="module."):
    return OrderedDict((key[len(prefix):] if key.startswith(prefix) else key, value) for key, value in state.items())


def body_only(state, model):
    own = model.state_dict()
    return {key: value for key, value in state.items() if key in own and own[key].shape == value.shape}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallel", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = Shape()
    model = Small(shape).to(device)
    if args.parallel:
        model = nn.DataParallel(model)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        x = torch.randn(8, shape.inputs, device=device)
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"model": model.state_dict(), "args": args, "shape": shape}, "wrapped.pt")
    torch.save(plain(model).state_dict(), "plain.pt")

    state = torch.load("wrapped.pt", map_location="cpu", weights_only=False)
    fresh = Small(state["shape"])
    fresh.load_state_dict(strip(state["model"]))
    fresh.load_state_dict(torch.load("plain.pt", map_location="cpu"))
    larger = Large(state["shape"])
    missing, unexpected = larger.load_state_dict(body_only(strip(state["model"]), larger), strict=False)
    assert not unexpected and all(key.startswith("head") for key in missing)
    fresh.eval()
    with torch.no_grad():
        print(fresh(torch.zeros(2, shape.inputs)).numpy(), vars(state["args"]))
    scripted = torch.jit.trace(fresh, torch.zeros(2, shape.inputs))
    scripted.save("traced.ts")
    print(torch.jit.load("traced.ts")(torch.ones(1, shape.inputs)).shape)


if __name__ == "__main__":
    main()
