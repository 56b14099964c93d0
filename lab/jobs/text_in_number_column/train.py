import csv
import logging
import sys

import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname).1s %(asctime)s %(filename)s:%(lineno)d] %(message)s")


class CsvRows(Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.rows = list(csv.DictReader(f))
        logging.info("%s: %d rows", path, len(self.rows))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        features = [float(row[name]) for name in ("temperature", "pressure", "humidity")]
        return torch.tensor(features), torch.tensor([float(row["yield"])])


def main():
    loader = DataLoader(CsvRows("plant.csv"), batch_size=4)
    net = nn.Linear(3, 1)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            logging.info("epoch %d loss %.3f", epoch, loss.item())


main()
