import torch
from torch import nn


class Client:
    def __init__(self, number, samples):
        rng = torch.Generator().manual_seed(number)
        self.samples = samples
        self.x = torch.randn(samples, 2, 40, generator=rng)
        self.y = (self.x[:, 0].mean(1) > 0).long() + (self.x[:, 1].mean(1) > 0).long()

    def fit(self, model, epochs=2):
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        model.train()
        for _ in range(epochs):
            for part in torch.randperm(self.samples).split(10):
                loss = nn.functional.cross_entropy(model(self.x[part]), self.y[part])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return model.state_dict()

    @torch.no_grad()
    def accuracy(self, model):
        model.eval()
        return (model(self.x).argmax(1) == self.y).float().mean().item()
