import argparse
import json
import os

import torch
import torch.nn.functional as F

from model import CharModel

TEXT = "the quick brown fox jumps over the lazy dog. " * 400


def parse():
    parser = argparse.ArgumentParser(description="character language model")
    parser.add_argument("--config", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True)
    return parser.parse_args()


def encode(text):
    symbols = sorted(set(text))
    table = {symbol: index for index, symbol in enumerate(symbols)}
    return torch.tensor([table[symbol] for symbol in text]), symbols


def sample_batch(data, batch, context):
    starts = torch.randint(0, len(data) - context - 1, (batch,))
    inputs = torch.stack([data[s:s + context] for s in starts])
    targets = torch.stack([data[s + 1:s + context + 1] for s in starts])
    return inputs, targets


@torch.no_grad()
def generate(model, symbols, length, device):
    tokens, state, text = torch.zeros(1, 1, dtype=torch.long, device=device), None, []
    for _ in range(length):
        logits, state = model(tokens, state)
        tokens = torch.multinomial(logits[:, -1].softmax(-1), 1)
        text.append(symbols[tokens.item()])
    return "".join(text)


def main():
    args = parse()
    torch.manual_seed(args.seed)
    with open(args.config) as handle:
        config = json.load(handle)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data, symbols = encode(TEXT)
    model = CharModel(len(symbols), config["embedding"], config["hidden"], config["layers"])
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    for step in range(config["steps"]):
        inputs, targets = sample_batch(data, config["batch"], config["context"])
        logits, _ = model(inputs.to(device))
        loss = F.cross_entropy(logits.flatten(0, 1), targets.to(device).flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 500 == 0:
            print(step, loss.item(), flush=True)
    torch.save({"model": model.state_dict(), "symbols": symbols}, os.path.join(args.out, "last.pt"))
    print(generate(model, symbols, 200, device))


if __name__ == "__main__":
    main()
