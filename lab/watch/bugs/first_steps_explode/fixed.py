"""How a patient's diabetes goes on within a year: regression on ten measurements."""
import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
torch.set_num_threads(1)

features, target = load_diabetes(return_X_y=True)
dataset = TensorDataset(
    torch.tensor(scale(features), dtype=torch.float32),
    torch.tensor(scale(target), dtype=torch.float32)[:, None],
)
train_set, val_set = random_split(dataset, [342, 100])


class Regressor(nn.Module):
    def __init__(self, sizes=(10, 128, 128, 64, 1)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        for layer in self.layers:
            nn.init.normal_(layer.weight, std=0.08)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


model = Regressor()
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
val_x, val_y = val_set[:]

for epoch in range(1, 31):
    model.train()
    for x, y in DataLoader(train_set, batch_size=38, shuffle=True):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = loss_fn(model(val_x), val_y)
    print("epoch", epoch, "loss", loss.item(), "val loss", val_loss.item())
