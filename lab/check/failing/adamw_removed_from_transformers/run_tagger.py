import argparse
import logging

import torch
from torch.utils.data import DataLoader
from transformers import AdamW, AutoConfig, get_linear_schedule_with_warmup

from tagger import LABELS, Tagger, read_tokens

logging.basicConfig(level=logging.INFO)
log = logging.getLogger(__name__)


def train(model, loader, epochs, lr, device):
    optimizer = AdamW(model.parameters(), lr=lr)
    steps = epochs * len(loader)
    schedule = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
    model.train()
    for epoch in range(epochs):
        for ids, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(ids.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        log.info("epoch %d loss %.4f", epoch, loss.item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=5e-5)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = AutoConfig.for_model("bert", num_hidden_layers=2, num_labels=len(LABELS))
    items = read_tokens(args.train, config.vocab_size)
    loader = DataLoader(items, batch_size=32, shuffle=True)
    train(Tagger(config.vocab_size, len(LABELS)).to(device), loader, args.epochs, args.lr, device)


if __name__ == "__main__":
    main()
