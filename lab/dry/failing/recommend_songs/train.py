import csv
from pathlib import Path

import torch
from torch import nn


def read(path):
    with open(path, newline="") as file:
        rows = [(int(r["user"]), int(r["song"]), float(r["plays"])) for r in csv.DictReader(file)]
    users, songs, plays = zip(*rows)
    return torch.tensor(users), torch.tensor(songs), torch.tensor(plays)


class Factors(nn.Module):
    def __init__(self, users, songs, width=16):
        super().__init__()
        self.users, self.songs = nn.Embedding(users, width), nn.Embedding(songs, width)

    def forward(self, user, song):
        return (self.users(user) * self.songs(song)).sum(1)


def main():
    data = Path(__file__).parent / "data"
    users, songs, plays = read(data / "train.csv")
    model = Factors(int(users.max()) + 1, int(songs.max()) + 1)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for epoch in range(50):
        for part in torch.randperm(len(users)).split(64):
            loss = (model(users[part], songs[part]) - plays[part].log1p()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print(epoch, loss.item())
    users, songs, plays = read(data / "test.csv")
    with torch.no_grad():
        print("RMSE", (model(users, songs) - plays.log1p()).pow(2).mean().sqrt().item())


if __name__ == "__main__":
    main()
