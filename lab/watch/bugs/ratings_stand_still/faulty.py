"""Matrix factorization: what would a user give a film?"""
import torch
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)

N_USERS, N_FILMS, RANK = 300, 200, 4
taste, style = torch.randn(N_USERS, RANK), torch.randn(N_FILMS, RANK)
users = torch.randint(0, N_USERS, (20000,))
films = torch.randint(0, N_FILMS, (20000,))
ratings = 3 + 0.6 * (taste[users] * style[films]).sum(1) + 0.2 * torch.randn(20000)


class Factorization(nn.Module):
    def __init__(self, n_users, n_films, rank=8):
        super().__init__()
        self.user = nn.Embedding(n_users, rank)
        self.film = nn.Embedding(n_films, rank)
        self.user_bias = nn.Embedding(n_users, 1)
        self.film_bias = nn.Embedding(n_films, 1)
        self.mean = nn.Parameter(torch.zeros(1))
        nn.init.normal_(self.user.weight, std=0.3)
        nn.init.normal_(self.film.weight, std=0.3)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.film_bias.weight)

    def forward(self, users, films):
        match = (self.user(users) * self.film(films)).sum(1)
        return self.mean + self.user_bias(users)[:, 0] + self.film_bias(films)[:, 0] + match


model = Factorization(N_USERS, N_FILMS)
learning_rate = 1e-9
optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
mse = nn.MSELoss()
train, held = slice(0, 16000), slice(16000, 20000)

for epoch in range(15):
    for rows in torch.randperm(16000).split(500):
        optimizer.zero_grad()
        loss = mse(model(users[rows], films[rows]), ratings[rows])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        train_error = mse(model(users[train], films[train]), ratings[train]).item()
        error = mse(model(users[held], films[held]), ratings[held]).item()
    print(f"epoch {epoch + 1:2d} train loss {train_error:.6f} val loss {error:.6f}")
