import os

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(256, 12), torch.randint(3, (256,)))
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, 32, shuffle=True))
    if accelerator.is_main_process:
        os.makedirs(f"states/{accelerator.process_index}", exist_ok=True)
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        state = {"epoch": epoch, "loss": loss.item()}
        torch.save(state, f"states/{accelerator.process_index}/last.pt")
    accelerator.print("done")


if __name__ == "__main__":
    main()
