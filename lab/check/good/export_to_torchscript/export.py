import argparse
import io
import os
import sys

import torch
from torch import Tensor, nn


class Gate(nn.Module):
    threshold: float

    def __init__(self, threshold: float = 0.5):
        super().__init__()
        self.threshold = threshold
        self.linear = nn.Linear(8, 8)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        if x.mean() > self.threshold:
            return self.linear(x)
        self.seen += 1
        return x


def to_script(model, example):
    return torch.jit.script(model)


def to_trace(model, example):
    return torch.jit.trace(model, example)


def to_onnx(model, example):
    import onnx  # only this format needs it

    buffer = io.BytesIO()
    torch.onnx.export(model, (example,), buffer)
    onnx.checker.check_model(onnx.load_from_string(buffer.getvalue()))
    return buffer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="model.ts")
    parser.add_argument("--format", default="script", choices=["script", "trace", "onnx"])
    args = parser.parse_args()
    example = torch.rand(2, 8)
    model = Gate().eval()
    exported = globals()[f"to_{args.format}"](model, example)
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    if args.format == "onnx":
        with open(args.out, "wb") as out:
            out.write(exported.getvalue())
        return 0
    exported.save(args.out)
    again = torch.jit.load(args.out)
    assert torch.allclose(again(example), model(example))
    print(again.code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
