import argparse
import contextlib

import torch
from torch import nn

try:
    from torch.amp import GradScaler

    make_scaler = lambda enabled: GradScaler("cuda", enabled=enabled)  # noqa: E731
except ImportError:
    from torch.cuda.amp import GradScaler

    def make_scaler(enabled):
        return GradScaler(enabled=enabled)


def build(norm=nn.BatchNorm2d):
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), norm(64), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--channels-last", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    dtype = getattr(torch, args.dtype)
    if dtype is torch.bfloat16 and not torch.cuda.is_bf16_supported():
        parser.error("this GPU has no bfloat16")
    model = build().cuda()
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
    scaler = make_scaler(dtype is torch.float16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(args.steps):
        images = torch.randn(32, 3, 64, 64, device="cuda")
        labels = images.mean((1, 2, 3)).mul(100).long().clamp(0, 9)
        autocast = contextlib.nullcontext() if dtype is torch.float32 else torch.autocast("cuda", dtype)
        with autocast:
            loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        if step % 50 == 0:
            print(step, loss.item(), scaler.get_scale())


if __name__ == "__main__":
    main()
