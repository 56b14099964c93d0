"""Ratings of movies by matrix factorization with biases. Val rmse reaches about 0.6; the mean rating gives 1.2."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(21)

USERS, MOVIES, FACTORS = 300, 200, 3


def ratings(count):
    taste = torch.randn(USERS, FACTORS)
    genre = torch.randn(MOVIES, FACTORS)
    mild = torch.randn(USERS) * 0.4
    fame = torch.randn(MOVIES) * 0.9
    users = torch.randint(USERS, (count,))
    movies = torch.randint(MOVIES, (count,))
    stars = 3 + 0.45 * (taste[users] * genre[movies]).sum(1) + mild[users] + fame[movies]
    stars = stars + 0.4 * torch.randn(count)
    return users, movies, stars


class Factorization(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.user = nn.Embedding(USERS, dim)
        self.movie = nn.Embedding(MOVIES, dim)
        self.user_bias = nn.Embedding(USERS, 1)
        self.movie_bias = nn.Embedding(MOVIES, 1)
        self.mean = nn.Parameter(torch.tensor(3.0))
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.movie.weight, std=0.1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.movie_bias.weight)

    def forward(self, users, movies):
        match = (self.user(users) * self.movie(movies)).sum(1)
        bias = self.user_bias(users).squeeze(1) + self.movie_bias(movies).squeeze(1)
        return self.mean + bias + match


users, movies, stars = ratings(11000)
train = TensorDataset(users[:9000], movies[:9000], stars[:9000])
val_users, val_movies, val_stars = users[9000:], movies[9000:], stars[9000:]

model = Factorization()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.5)
criterion = nn.MSELoss()
loader = DataLoader(train, batch_size=256, shuffle=True)

for epoch in range(25):
    total = 0.0
    for batch_users, batch_movies, batch_stars in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch_users, batch_movies), batch_stars)
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        val = criterion(model(val_users, val_movies), val_stars).sqrt().item()
    print(f"epoch {epoch + 1:>2} train loss {total / len(loader):.3f} val rmse {val:.3f}")
