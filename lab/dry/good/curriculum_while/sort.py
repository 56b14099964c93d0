"""Sort numbers with a pointer; sequences grow longer with the steps."""
import argparse
import itertools

import torch
from torch import nn

STAGES = {0: 4, 1000: 6, 2500: 8, 4000: 10}


class Pointer(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Linear(1, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.rank = nn.Embedding(16, width)

    def forward(self, x):
        h = self.encoder(self.embed(x[..., None]))
        return self.rank.weight[: x.shape[1]] @ h.transpose(1, 2)


def stream(length_of, batch, seed):
    g = torch.Generator().manual_seed(seed)
    for step in itertools.count():
        x = torch.rand(batch, length_of(step), generator=g)
        yield x, x.argsort(1)


def length_at(step):
    return STAGES[max(s for s in STAGES if s <= step)]


class Slope:
    """Tells when the loss has not fallen for a while."""

    def __init__(self, patience):
        self.best, self.bad, self.patience = float("inf"), 0, patience

    def __call__(self, value):
        self.bad = 0 if value < self.best else self.bad + 1
        self.best = min(self.best, value)
        return self.bad > self.patience


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--updates", type=int, default=500)
    p.add_argument("--log-every", type=int, default=250)
    args = p.parse_args()
    torch.manual_seed(0)
    model = Pointer()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    source = stream(length_at, 32, 0)
    done, step, table, slope = False, 0, {}, Slope(patience=2000)
    recent = []
    while not done:
        x, order = next(source)
        logits = model(x)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), order.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(loss.item())
        hit = (logits.argmax(-1) == order).float().mean().item()
        table.setdefault(x.shape[1], []).append(hit)
        step += 1
        if step % args.log_every == 0:
            print(step, x.shape[1], sum(recent[-args.log_every:]) / args.log_every, flush=True)
        done = step >= args.updates or slope(loss.item())
    longest = length_at(step - 1)
    first = table[STAGES[0]]
    print("steps of the first stage", len(first), "last accuracy of the longest", table[longest][-1])
    if step > max(STAGES):
        for length in STAGES.values():
            print(length, max(table[length]))
    model.eval()
    with torch.no_grad():
        x, order = next(stream(lambda _: longest, 200, 1))
        print("test", (model(x).argmax(-1) == order).float().mean().item())
    torch.save({"model": model.state_dict(), "table": {k: v[-1] for k, v in table.items()}}, "sort.pt")


if __name__ == "__main__":
    main()
