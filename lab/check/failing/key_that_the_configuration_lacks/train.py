"""Matrix factorization with implicit feedback."""

import argparse

import torch
import yaml
from torch import nn


class Factors(nn.Module):
    def __init__(self, users, items, width):
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.items = nn.Embedding(items, width)

    def forward(self, users, items):
        return (self.users(users) * self.items(items)).sum(-1)


def interactions(config):
    generator = torch.Generator().manual_seed(config["seed"])
    taste = torch.randn(config["users"], 4, generator=generator)
    kind = torch.randn(config["items"], 4, generator=generator)
    return (taste @ kind.t()) > 2.0


def fit(model, liked, config):
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    pairs = liked.nonzero()
    for epoch in range(config["epochs"]):
        order = torch.randperm(len(pairs))
        for part in order.split(config["batch_size"]):
            users, items = pairs[part].t()
            others = torch.randint(0, liked.shape[1], items.shape)
            margin = model(users, items) - model(users, others)
            loss = -nn.functional.logsigmoid(margin).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


@torch.no_grad()
def evaluate(model, liked, config):
    hits = 0
    for users in torch.arange(liked.shape[0]).split(config["batch_size"]):
        scores = model.users(users) @ model.items.weight.t()
        best = scores.topk(config["top_k"], dim=1).indices
        hits += liked[users].gather(1, best).any(1).sum().item()
    return hits / liked.shape[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="recommender.yaml")
    args = parser.parse_args()
    with open(args.config, encoding="utf-8") as handle:
        config = yaml.safe_load(handle)
    liked = interactions(config["data"])
    model = Factors(config["data"]["users"], config["data"]["items"], config["model"]["width"])
    fit(model, liked, config["train"])
    print("hit rate", evaluate(model, liked, config["eval"]))


if __name__ == "__main__":
    main()
