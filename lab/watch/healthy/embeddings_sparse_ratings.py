"""Matrix factorization of film ratings: sparse embeddings with SparseAdam, a dense part with Adam.

Should reach: val rmse below 0.40 (predicting the mean: about 1.0; the noise alone: 0.3).
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
torch.set_num_threads(1)
USERS, ITEMS, RATINGS, RANK = 300, 200, 15000, 4


def make_ratings():
    taste, style = torch.randn(USERS, RANK), torch.randn(ITEMS, RANK)
    user_bias, item_bias = 0.4 * torch.randn(USERS), 0.5 * torch.randn(ITEMS)
    pairs = torch.randperm(USERS * ITEMS)[:RATINGS]
    user, item = pairs // ITEMS, pairs % ITEMS
    rating = 3.2 + user_bias[user] + item_bias[item] + 0.35 * (taste[user] * style[item]).sum(1)
    return user, item, rating + 0.3 * torch.randn(RATINGS)


class Factorization(nn.Module):
    def __init__(self, mean):
        super().__init__()
        self.user = nn.Embedding(USERS, 8, sparse=True)
        self.item = nn.Embedding(ITEMS, 8, sparse=True)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        self.user_bias = nn.Parameter(torch.zeros(USERS))
        self.item_bias = nn.Parameter(torch.zeros(ITEMS))
        self.mean = nn.Parameter(mean)

    def forward(self, user, item):
        match = (self.user(user) * self.item(item)).sum(1)
        return self.mean + self.user_bias[user] + self.item_bias[item] + match

    def penalty(self, user, item):
        return (self.user(user) ** 2).sum(1).mean() + (self.item(item) ** 2).sum(1).mean()


user, item, rating = make_ratings()
cut = int(0.85 * RATINGS)
model = Factorization(rating[:cut].mean())
sparse = torch.optim.SparseAdam([model.user.weight, model.item.weight], lr=0.01)
dense = torch.optim.Adam([model.user_bias, model.item_bias, model.mean], lr=0.01)

for epoch in range(1, 13):
    model.train()
    total = 0.0
    for index in torch.randperm(cut).split(128):
        sparse.zero_grad()
        dense.zero_grad()
        error = F.mse_loss(model(user[index], item[index]), rating[index])
        loss = error + 0.05 * model.penalty(user[index], item[index])
        loss.backward()
        sparse.step()
        dense.step()
        total += error.item() * len(index)
    model.eval()
    with torch.no_grad():
        rmse = F.mse_loss(model(user[cut:], item[cut:]), rating[cut:]).sqrt().item()
    print(f"epoch {epoch:2d}: train rmse {(total / cut) ** 0.5:.4f}, val rmse {rmse:.4f}")
