"""A character language model."""
import os

import click
import torch
from torch import nn
from torch.nn import functional as F


class CharLM(nn.Module):
    def __init__(self, symbols, width=256):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.rnn = nn.GRU(width, width, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(width, symbols)

    def forward(self, x, state=None):
        y, state = self.rnn(self.embed(x), state)
        return self.out(y), state


class Corpus:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.symbols = sorted(set(text))
        code = {c: i for i, c in enumerate(self.symbols)}
        self.ids = torch.tensor([code[c] for c in text])

    def batch(self, size, length):
        at = torch.randint(len(self.ids) - length - 1, (size,))
        block = torch.stack([self.ids[i:i + length + 1] for i in at.tolist()])
        return block[:, :-1], block[:, 1:]


def schedule(optimizer, warmup, total):
    steps = max(1, int(warmup * total))

    def factor(step):
        if step < steps:
            return (step + 1) / steps
        return max(0.0, (total - step) / max(1, total - steps))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


@click.group()
@click.option("--seed", default=0, show_default=True)
def cli(seed):
    torch.manual_seed(seed)


@cli.command()
@click.option("--corpus", type=click.Path(exists=True, dir_okay=False), required=True)
@click.option("--out", default="/scratch/lm", show_default=True)
@click.option("--steps", default=50_000, show_default=True)
@click.option("--lr", default=1e-3)
@click.option("--warmup", metavar="SHARE", help="share of the steps in which the rate rises")
@click.option("--batch", default=64)
@click.option("--length", default=128)
def train(corpus, out, steps, lr, warmup, batch, length):
    """Train on a text."""
    os.makedirs(out, exist_ok=True)
    data = Corpus(corpus)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = CharLM(len(data.symbols)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    scheduler = schedule(optimizer, warmup or 0.02, steps)
    for step in range(steps):
        x, y = (t.to(device) for t in data.batch(batch, length))
        logits, _ = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 500 == 0:
            click.echo(f"{step} {loss.item():.3f} {scheduler.get_last_lr()[0]:.2e}")
    torch.save({"model": model.state_dict(), "symbols": data.symbols}, os.path.join(out, "lm.pt"))


@cli.command()
@click.argument("weights")
@click.option("--length", default=400)
def write(weights, length):
    """Write a text."""
    saved = torch.load(weights)
    model = CharLM(len(saved["symbols"]))
    model.load_state_dict(saved["model"])
    x, state, text = torch.zeros(1, 1, dtype=torch.long), None, []
    for _ in range(length):
        logits, state = model(x, state)
        x = torch.multinomial(logits[:, -1].softmax(-1), 1)
        text.append(saved["symbols"][x.item()])
    click.echo("".join(text))


if __name__ == "__main__":
    cli()
