"""A recommender: ratings of users and items that are known by their codes; the test has only some of the users."""

import numpy as np
import torch
from sklearn.preprocessing import LabelEncoder
from torch import nn

SEED = 30
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)
USERS, ITEMS, COUNT = 300, 80, 12000
taste, content = rng.standard_normal((USERS, 3)), rng.standard_normal((ITEMS, 3))
generosity = rng.standard_normal(USERS)
users, items = rng.integers(0, USERS, COUNT), rng.integers(0, ITEMS, COUNT)
ratings = 3 + generosity[users] + (taste[users] * content[items]).sum(1) + 0.3 * rng.standard_normal(COUNT)
user_codes = np.array([f"u{number:05d}" for number in rng.permutation(100000)[:USERS]])[users]
item_codes = np.array([f"i{number:05d}" for number in rng.permutation(100000)[:ITEMS]])[items]
recent = np.arange(COUNT) >= 11000
recent &= users % 3 == 0
user_encoder, item_encoder = LabelEncoder(), LabelEncoder()


class Factors(nn.Module):
    def __init__(self, rank=4):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, rank), nn.Embedding(ITEMS, rank)
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        for table in (self.user, self.item, self.user_bias, self.item_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user, item):
        bias = self.user_bias(user) + self.item_bias(item)
        return 3 + (self.user(user) * self.item(item)).sum(1) + bias.squeeze(1)


train_user = torch.tensor(user_encoder.fit_transform(user_codes[~recent]))
train_item = torch.tensor(item_encoder.fit_transform(item_codes[~recent]))
train_rating = torch.tensor(ratings[~recent], dtype=torch.float32)
test_user = torch.tensor(user_encoder.transform(user_codes[recent]))
test_item = torch.tensor(item_encoder.transform(item_codes[recent]))
test_rating = torch.tensor(ratings[recent], dtype=torch.float32)
model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(8):
    for index in torch.randperm(len(train_user)).split(128):
        loss = nn.functional.mse_loss(model(train_user[index], train_item[index]), train_rating[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(test_user, test_item), test_rating).sqrt()
    print(f"epoch {epoch} loss {loss.item():.4f} test rmse {error:.4f}")
