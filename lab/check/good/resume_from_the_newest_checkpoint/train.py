import argparse
import glob
import os
import re
import signal
import tempfile

import torch
from torch import nn

STOP = False


def on_signal(signum, frame):
    global STOP
    STOP = True


def newest(folder):
    found = glob.glob(os.path.join(folder, "step_*.pt"))
    return max(found, key=lambda name: int(re.search(r"step_(\d+)", name).group(1)), default=None)


def save(folder, step, **parts):
    state = {name: part.state_dict() for name, part in parts.items()}
    state["step"] = step
    handle, temporary = tempfile.mkstemp(dir=folder)
    os.close(handle)
    torch.save(state, temporary)
    os.replace(temporary, os.path.join(folder, f"step_{step}.pt"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default=os.environ.get("CHECKPOINTS", "checkpoints"))
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    signal.signal(signal.SIGUSR1, on_signal)
    model = nn.Linear(32, 32)
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    step = 0
    path = newest(args.folder)
    if path is not None:
        state = torch.load(path, map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        step = state["step"]
        print("resumed from", path)
    while step < args.steps and not STOP:
        x = torch.randn(64, 32)
        loss = (model(x) - x.cumsum(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
        if step % args.every == 0:
            save(args.folder, step, model=model, optimizer=optimizer, scheduler=scheduler)
    save(args.folder, step, model=model, optimizer=optimizer, scheduler=scheduler)


if __name__ == "__main__":
    main()
