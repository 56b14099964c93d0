"""Energy of small molecules on three ranks: the rate falls when the validation error of all ranks together stands still."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(41)
atoms = torch.randint(0, 5, (1500, 8))
positions = 2 * torch.rand(1500, 8, 3)
charge = torch.tensor([0.2, -0.6, 0.9, -0.3, 0.5])[atoms]
apart = torch.cdist(positions, positions) + 0.5
energy = (charge.unsqueeze(1) * charge.unsqueeze(2) / apart).sum((1, 2)).unsqueeze(1)
energy = (energy - energy.mean()) / energy.std()


class Molecule(nn.Module):
    def __init__(self):
        super().__init__()
        self.kinds = nn.Embedding(5, 16)
        self.pair = nn.Sequential(nn.Linear(33, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.out = nn.Linear(48, 1)

    def forward(self, atoms, positions):
        kinds = self.kinds(atoms)
        n = atoms.shape[1]
        left = kinds.unsqueeze(2).expand(-1, -1, n, -1)
        right = kinds.unsqueeze(1).expand(-1, n, -1, -1)
        apart = 1 / (torch.cdist(positions, positions) + 0.5)
        return self.out(self.pair(torch.cat([left, right, apart.unsqueeze(-1)], -1)).mean((1, 2)))


train = TensorDataset(atoms[:1200], positions[:1200], energy[:1200])
val = [part[1200 + rank :: world] for part in (atoms, positions, energy)]
model = DistributedDataParallel(Molecule())
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.05)
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=25, sampler=sampler)
for epoch in range(8):
    sampler.set_epoch(epoch)
    model.train()
    for kinds, places, wanted in loader:
        loss = nn.functional.smooth_l1_loss(model(kinds, places), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = nn.functional.smooth_l1_loss(model(val[0], val[1]), val[2])
    dist.all_reduce(val_loss)
    val_loss /= world
    scheduler.step(val_loss.item())
    if rank == 0:
        print(f"epoch {epoch} val error {val_loss.item():.4f} rate {scheduler.get_last_lr()[0]:.5f}")
dist.destroy_process_group()
