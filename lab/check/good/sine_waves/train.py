import argparse

import matplotlib
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.cell = nn.LSTMCell(1, 51)
        self.linear = nn.Linear(51, 1)

    def forward(self, inputs, future=0):
        outputs = []
        h = torch.zeros(inputs.size(0), 51, dtype=torch.double)
        c = torch.zeros(inputs.size(0), 51, dtype=torch.double)
        for part in inputs.split(1, dim=1):
            h, c = self.cell(part, (h, c))
            output = self.linear(h)
            outputs += [output]
        for _ in range(future):
            h, c = self.cell(output, (h, c))
            output = self.linear(h)
            outputs += [output]
        return torch.cat(outputs, dim=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=15)
    opt = parser.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    data = torch.load("traindata.pt", weights_only=False)
    inputs, target = torch.from_numpy(data[3:, :-1]), torch.from_numpy(data[3:, 1:])
    seq = Sequence()
    seq.double()
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8)
    for i in range(opt.steps):

        def closure():
            optimizer.zero_grad()
            loss = criterion(seq(inputs), target)
            loss.backward()
            return loss

        optimizer.step(closure)
        with torch.no_grad():
            pred = seq(inputs, future=100)
        plt.figure(figsize=(10, 4))
        plt.plot(pred[0].numpy())
        plt.savefig("predict%d.pdf" % i)
        plt.close()
