import argparse
import logging

import torch
from torch import nn

from compat import Tracker, optimizer, tqdm

try:
    import torch_scatter
except (ImportError, OSError):
    torch_scatter = None


def scatter_mean(values, index, groups):
    if torch_scatter is not None:
        return torch_scatter.scatter_mean(values, index, dim=0, dim_size=groups)
    total = torch.zeros(groups, values.shape[1], device=values.device).index_add_(0, index, values)
    count = torch.bincount(index, minlength=groups).clamp(min=1)
    return total / count.unsqueeze(1)


def main():
    logging.basicConfig(level=logging.INFO)
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--onnx", action="store_true", help="needs onnx")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    update = optimizer(model.parameters(), 1e-3)
    tracker = Tracker("sets")
    for epoch in range(args.epochs):
        for step in tqdm(range(20), desc=f"epoch {epoch}"):
            points = torch.randn(64, 8, device=device)
            index = torch.randint(10, (64,), device=device)
            pooled = scatter_mean(points, index, 10)
            loss = (model(pooled).squeeze(1) - pooled.sum(1)).square().mean()
            update.zero_grad()
            loss.backward()
            update.step()
        tracker.log(epoch, loss=loss.item())
    tracker.close()
    if args.onnx:
        import onnx

        print(onnx.__version__)


if __name__ == "__main__":
    main()
