import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, in_features, num_classes):
        super().__init__()
        self.linear = nn.Linear(in_features, num_classes)

    def forward(self, x):
        return self.linear(x)


REGISTRY = {"linear": Classifier}


def create_model(name, **kwargs):
    return REGISTRY[name](**kwargs)


def main():
    x, y = torch.randn(256, 24), torch.randint(6, (256,))
    print(f"data: {tuple(x.shape)}, {int(y.max()) + 1} classes")
    model = create_model("linear", in_features=x.shape[1])
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
