"""Random crops are made by the workers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Crops(Dataset):
    def __len__(self):
        return 3000

    def __getitem__(self, index):
        image = torch.full((20 + index % 9, 28), index / 3000)
        size = int(torch.randint(8, 22, (1,)))
        top = int(torch.randint(0, image.shape[0] - size, (1,)))
        part = image[top : top + size, :size]
        return nn.functional.adaptive_avg_pool2d(part[None], 6), torch.tensor([index / 3000])


if __name__ == "__main__":
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        for x, y in DataLoader(Crops(), batch_size=10, shuffle=True, num_workers=2):
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
