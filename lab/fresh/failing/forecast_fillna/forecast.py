import argparse

import pandas as pd
import torch
from torch import nn

import series


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.rnn(x.unsqueeze(-1))
        return self.head(states[:, -1]).squeeze(-1)


def fit(x, y, hidden, epochs, device):
    model = Forecaster(hidden).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            loss = nn.functional.huber_loss(model(x[rows].to(device)), y[rows].to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{epoch:3d} {loss.item():.5f}")
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=1500)
    parser.add_argument("--past", type=int, default=28)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--every", type=int, default=2, help="forecast only each so many days")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    demand = series.load(args.days)
    mean, spread = demand.mean(), demand.std()
    x, y = (torch.from_numpy(a) for a in series.windows((demand - mean) / spread, args.past))
    cut = int(0.8 * len(x))
    model = fit(x[:cut], y[:cut], args.hidden, args.epochs, device)

    with torch.no_grad():
        guess = model(x[cut :: args.every].to(device)).cpu().numpy() * spread + mean
    truth = demand.iloc[args.past + cut :]
    forecast = pd.Series(guess, index=truth.index[:: args.every])
    table = series.compare(truth, forecast)
    table.to_csv("errors.csv")
    print(table)


if __name__ == "__main__":
    main()
