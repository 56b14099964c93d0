"""Sums of sequences with a GRU; goes on where it stopped."""
import argparse
import pathlib
import re

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Sum(nn.Module):
    def __init__(self, width=32, layers=1):
        super().__init__()
        self.gru = nn.GRU(1, width, layers, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.gru(x[..., None])[0][:, -1])[:, 0]


def files(folder):
    found = [(int(m.group(1)), p) for p in folder.glob("epoch*.pt") if (m := re.fullmatch(r"epoch(\d+)", p.stem))]
    return [p for _, p in sorted(found)]


def save(folder, epoch, model, optimizer, schedule, averaged):
    state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
             "schedule": schedule.state_dict(), "averaged": averaged.state_dict(), "rng": torch.get_rng_state()}
    temporary = folder / "tmp.part"
    torch.save(state, temporary)
    temporary.replace(folder / f"epoch{epoch:04d}.pt")
    for old in files(folder)[:-3]:
        old.unlink(missing_ok=True)


def resume(path, model, optimizer, schedule, averaged):
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    schedule.load_state_dict(state["schedule"])
    averaged.load_state_dict(state["averaged"])
    torch.set_rng_state(state["rng"])
    return state["epoch"] + 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--resume", choices=["auto", "never"], default="auto")
    p.add_argument("--save-every", type=int, default=15)
    p.add_argument("--average-from", type=int, default=None)
    args = p.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    x = torch.rand(800, 10)
    loader = DataLoader(TensorDataset(x, x.sum(1)), 40, shuffle=True)
    model = Sum()
    averaged = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)], milestones=[5])
    average_from = args.epochs * 3 // 4 if args.average_from is None else args.average_from
    start = 0
    if args.resume == "auto" and (found := files(args.work)):
        start = resume(found[-1], model, optimizer, schedule, averaged)
        print("resumed", found[-1].name, "at", start)
    loss = None
    for epoch in range(start, args.epochs):
        for a, b in loader:
            loss = nn.functional.mse_loss(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        if epoch >= average_from:
            averaged.update_parameters(model)
        if (epoch + 1) % args.save_every == 0 or epoch + 1 == args.epochs:
            save(args.work, epoch, model, optimizer, schedule, averaged)
    if loss is not None:
        print("loss", loss.item())
    plain = Sum()
    state = torch.load(files(args.work)[-1])["averaged"]
    count = int(state.pop("n_averaged"))
    plain.load_state_dict({k.removeprefix("module."): v for k, v in state.items()})
    with torch.no_grad():
        print("averaged", count, "error", (plain(x) - x.sum(1)).abs().mean().item())


if __name__ == "__main__":
    main()
