"""In which ring of a target does a shot land? Points in a plane, five rings."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=50)
parser.add_argument("--depth", type=int, default=7)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--lr", type=float, default=0.02)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(1)


def make_shots(count):
    points = torch.rand(count, 2) * 2 - 1
    rings = (points.norm(dim=1) * 4).long().clamp(max=4)
    return points * 2, rings


class RingNet(nn.Module):
    def __init__(self, depth, width, rings=5):
        super().__init__()
        layers = []
        size = 2
        for _ in range(depth):
            layers += [nn.Linear(size, width), nn.Sigmoid()]
            size = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(size, rings)

    def forward(self, points):
        return self.head(self.body(points))


def evaluate(model, points, rings):
    model.eval()
    with torch.no_grad():
        logits = model(points)
        loss = nn.functional.cross_entropy(logits, rings)
        accuracy = (logits.argmax(1) == rings).float().mean()
    return loss.item(), accuracy.item()


def main():
    points, rings = make_shots(2000)
    test_points, test_rings = make_shots(500)
    model = RingNet(args.depth, args.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        model.train()
        order = torch.randperm(len(points))
        losses = []
        for batch in order.split(100):
            loss = nn.functional.cross_entropy(model(points[batch]), rings[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        test_loss, accuracy = evaluate(model, test_points, test_rings)
        print(
            f"[{epoch + 1}/{args.epochs}] train loss: {sum(losses) / len(losses):.4f} "
            f"test loss: {test_loss:.4f} test accuracy: {accuracy:.3f}"
        )


if __name__ == "__main__":
    main()
