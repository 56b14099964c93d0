"""State of a beehive from its sensors."""
import argparse

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.preprocessing import LabelEncoder, StandardScaler
from torch import nn

SENSORS = ["weight", "temp", "hum", "sound"]


def split(frame, share):
    """The last days are for the test."""
    cut = int(len(frame) * (1 - share))
    return frame.iloc[:cut], frame.iloc[cut:]


def tensors(frame, scaler, encoder):
    x = scaler.transform(frame[SENSORS].to_numpy())
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(encoder.transform(frame["state"]))


class Net(nn.Module):
    def __init__(self, classes, width=64):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(len(SENSORS), width), nn.Mish(), nn.Linear(width, width),
                                    nn.Mish(), nn.Linear(width, classes))

    def forward(self, x):
        return self.layers(x)


def weights_of(labels, classes):
    counts = torch.bincount(labels, minlength=classes).float()
    return counts.sum() / (classes * counts)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--table", required=True)
    p.add_argument("--epochs", type=int, default=50)
    p.add_argument("--test-share", type=float, default=0.25)
    args = p.parse_args()
    torch.manual_seed(1)
    frame = pd.read_csv(args.table).sort_values("day")
    encoder = LabelEncoder().fit(frame["state"])
    early, late = split(frame, args.test_share)
    scaler = StandardScaler().fit(early[SENSORS].to_numpy())
    x, y = tensors(early, scaler, encoder)
    model = Net(len(encoder.classes_))
    loss_of = nn.CrossEntropyLoss(weight=weights_of(y, len(encoder.classes_)))
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        model.train()
        for part in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss = loss_of(model(x[part]), y[part])
            loss.backward()
            optimizer.step()
        if epoch % 50 == 0:
            print(epoch, loss.item())
    torch.save(model.state_dict(), "bees.pt")
    model.eval()
    x, y = tensors(late, scaler, encoder)
    with torch.no_grad():
        probabilities = model(x)[:, np.unique(y)].softmax(1)
    guess = np.unique(y)[probabilities.argmax(1).numpy()]
    print(confusion_matrix(y, guess))
    print(classification_report(y, guess, target_names=list(encoder.classes_), zero_division=0))


if __name__ == "__main__":
    main()
