import torch
from torch import nn
from torch.export import Dim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(2, 8, 5, padding=2), nn.ReLU(), nn.MaxPool1d(4))
        self.head = nn.LazyLinear(3)

    def forward(self, signal):
        return self.head(self.features(signal).flatten(1))


def main():
    torch.manual_seed(0)
    model = Net()
    model(torch.zeros(1, 2, 64))
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
    for _ in range(40):
        signal = torch.randn(32, 2, 64)
        wanted = signal.abs().mean(dim=(1, 2)).mul(3.4).long().clamp(0, 2)
        loss = nn.functional.cross_entropy(model(signal), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    example = torch.randn(4, 2, 64)
    program = torch.export.export(model, (example,), dynamic_shapes=({0: Dim("batch", min=2)},))
    torch.export.save(program, "net.pt2")
    other = torch.randn(9, 2, 64)
    exported = torch.export.load("net.pt2").module()
    torch.testing.assert_close(exported(other), model(other))
    traced = torch.jit.trace(model, example)
    assert torch.allclose(traced(other), model(other), atol=1e-5)
    print("exported", loss.item())


main()
