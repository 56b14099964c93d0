"""Matrix factorization with Bayesian personalized ranking."""

import argparse
import json
from collections import defaultdict

import torch
from torch import nn
from torch.nn.functional import logsigmoid

import metrics


class Factors(nn.Module):
    def __init__(self, users, items, size):
        super().__init__()
        self.users = nn.Embedding(users, size)
        self.items = nn.Embedding(items, size)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, users, items):
        return (self.users(users) * self.items(items)).sum(-1)


def interactions(users, items, each=12):
    taste = torch.randn(users, 4) @ torch.randn(4, items)
    top = taste.topk(each, dim=1).indices
    return [(user, item) for user, row in enumerate(top.tolist()) for item in row]


def hold_out(pairs):
    by_user = defaultdict(list)
    for user, item in pairs:
        by_user[user].append(item)
    train = [(user, item) for user, items in by_user.items() for item in items[:-2]]
    held = {user: set(items[-2:]) for user, items in by_user.items()}
    return train, held


@torch.no_grad()
def top_lists(model, held, train, k):
    seen = defaultdict(list)
    for user, item in train:
        seen[user].append(item)
    lists = []
    for user in held:
        scores = model.items.weight @ model.users.weight[user]
        scores[seen[user]] = -torch.inf
        lists.append(scores.topk(k).indices.tolist())
    return lists


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=5000)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(0)
    train, held = hold_out(interactions(args.users, args.items))
    model = Factors(args.users, args.items, args.size)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    pairs = torch.tensor(train)
    for epoch in range(args.epochs):
        for rows in torch.randperm(len(pairs)).split(256):
            users, liked = pairs[rows].unbind(1)
            other = torch.randint(args.items, liked.shape)
            loss = -logsigmoid(model(users, liked) - model(users, other)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, round(loss.item(), 4))

    result = metrics.evaluate(top_lists(model, held, train, 10), held.values())
    print(f"users {result['users']}, hit rate {result['hit@10']:.3f}, recall {result['recall@10']:.3f}")
    with open("result.json", "w") as handle:
        json.dump(result, handle)


if __name__ == "__main__":
    main()
