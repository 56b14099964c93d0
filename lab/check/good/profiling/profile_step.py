import argparse
from functools import partial
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def keep(folder, profiler):
    profiler.export_chrome_trace(str(folder / f"trace_{profiler.step_num}.json"))


def step(model, optimizer, x):
    with record_function("forward"):
        loss = model(x).square().mean()
    with record_function("backward"):
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace", type=Path, default=Path("traces"))
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    args.trace.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda", 0)
    model = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True).to(device)
    if args.compile and hasattr(torch, "compile"):
        model = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters())
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=partial(keep, args.trace),
        record_shapes=True,
    ) as profiler:
        for _ in range(8):
            step(model, optimizer, torch.randn(8, 128, 512, device=device))
            profiler.step()
    print(profiler.key_averages().table(sort_by="self_cuda_time_total", row_limit=10))
    with open(args.trace / "summary.txt", "w") as out:
        out.write(profiler.key_averages().table(row_limit=20))
    print((args.trace / "summary.txt").read_text()[:200])


if __name__ == "__main__":
    main()
