import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        features = torch.full((32,), index / 256)
        return features.cuda(), features.sum().cuda()


def main():
    model = nn.Linear(32, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in DataLoader(Samples(), batch_size=32, num_workers=2):
        loss = (model(x)[:, 0] - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")


main()
