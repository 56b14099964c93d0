import copy

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.state, self.bad = patience, None, None, 0

    def update(self, score, model):
        if self.best is None or score > self.best + 1e-4:
            self.best, self.state, self.bad = score, copy.deepcopy(model.state_dict()), 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def main():
    torch.manual_seed(0)
    x, y = load_breast_cancer(return_X_y=True)
    parts = train_test_split(x, y, test_size=0.25, random_state=0, stratify=y)
    scaler = StandardScaler().fit(parts[0])
    train_x, test_x = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in parts[:2])
    train_y, test_y = (torch.tensor(part, dtype=torch.float32) for part in parts[2:])
    model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    stopping, stopped = EarlyStopping(8), None
    for epoch in range(500):
        model.train()
        for part in torch.randperm(len(train_x)).split(32):
            loss = nn.functional.binary_cross_entropy_with_logits(model(train_x[part]).squeeze(1), train_y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            score = ((model(test_x).squeeze(1) > 0).float() == test_y).float().mean().item()
        if stopping.update(score, model):
            stopped = epoch
            break
    if stopped is None:
        raise RuntimeError("training did not converge in 500 epochs")
    if stopping.best < 0.9:
        raise RuntimeError(f"accuracy {stopping.best:.3f} is too low")
    model.load_state_dict(stopping.state)
    torch.save(model, "model.pt")
    print("stopped at", stopped, "with", stopping.best)


if __name__ == "__main__":
    main()
