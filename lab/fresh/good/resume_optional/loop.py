"""A loop that goes on from where it stopped, if it ever did."""

import argparse
import glob
import json
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path

import torch
from torch import nn

stop = False


def on_signal(number, frame):
    global stop
    stop = True


def newest(folder):
    found = glob.glob(os.path.join(folder, "step_*.pt"))
    return max(found, key=lambda name: int(re.search(r"step_(\d+)", name).group(1)), default=None)


def resolve(resume, folder):
    if resume in (None, "", "none"):
        return None
    if resume == "auto":
        return newest(folder)
    if not Path(resume).is_file():
        raise SystemExit(f"no checkpoint {resume}")
    return resume


def save(folder, step, **parts):
    handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        torch.save({"step": step, **parts}, file)
    os.replace(name, os.path.join(folder, f"step_{step:06d}.pt"))
    for old in sorted(glob.glob(os.path.join(folder, "step_*.pt")))[:-2]:
        os.remove(old)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", nargs="?", const="auto")
    parser.add_argument("--out", default="work")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--every", type=int, default=10)
    args = parser.parse_args()
    for name in ("SIGUSR1", "SIGTERM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), on_signal)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    try:
        history = json.loads((out / "history.json").read_text())
    except FileNotFoundError:
        history = []

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = 0
    path = resolve(args.resume, out)
    if path:
        state = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["step"]
    loss = None
    for step in range(start + 1, start + args.steps + 1):
        x = torch.randn(16, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.every == 0 or stop:
            save(out, step, model=model.state_dict(), optimizer=optimizer.state_dict())
            history.append({"step": step, "loss": loss.item()})
        if stop:
            break
    (out / "history.json").write_text(json.dumps(history))
    last = newest(out)
    if last is not None:
        shutil.copy(last, out / "final.pt")
    best = min(history, key=lambda entry: entry["loss"]) if history else None
    if best:
        print("best", best["step"], best["loss"])


if __name__ == "__main__":
    main()
