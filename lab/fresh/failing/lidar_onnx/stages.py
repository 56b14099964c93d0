import os

import numpy as np
import torch
from torch import nn

STAGES = {}


def stage(function):
    STAGES[function.__name__] = function
    return function


class PointNet(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.point = nn.Sequential(nn.Conv1d(3, 64, 1), nn.ReLU(), nn.Conv1d(64, 128, 1), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, classes))

    def forward(self, cloud):
        return self.head(self.point(cloud).amax(-1))


class State:
    def __init__(self, args):
        self.args = args
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = PointNet().to(self.device)
        os.makedirs(args.work, exist_ok=True)
        with np.load(args.points) as f:
            self.data = {k: torch.from_numpy(f[k]) for k in ("x_train", "y_train", "x_test", "y_test")}

    @property
    def weights(self):
        return os.path.join(self.args.work, "pointnet.pt")

    def load(self):
        if os.path.exists(self.weights):
            self.model.load_state_dict(torch.load(self.weights, map_location=self.device))
        return self.model.eval()


@stage
def train(state):
    model, x, y = state.model, state.data["x_train"], state.data["y_train"]
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for epoch in range(state.args.epochs):
        model.train()
        for part in torch.randperm(len(x)).split(64):
            loss = nn.functional.cross_entropy(model(x[part].to(state.device)), y[part].to(state.device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            torch.save(model.state_dict(), state.weights)
    torch.save(model.state_dict(), state.weights)


@stage
@torch.no_grad()
def evaluate(state):
    model = state.load()
    guesses = [model(part.to(state.device)).argmax(1).cpu() for part in state.data["x_test"].split(256)]
    print("accuracy", (torch.cat(guesses) == state.data["y_test"]).float().mean().item())


@stage
def export(state):
    model = state.load().cpu()
    cloud = torch.randn(1, 3, 1024)
    target = os.path.join(state.args.work, "pointnet.onnx")
    torch.onnx.export(model, (cloud,), target, input_names=["cloud"], output_names=["logits"])
    print("exported", target)
