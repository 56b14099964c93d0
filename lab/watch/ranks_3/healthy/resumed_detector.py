"""A detector of clicks in long recordings. The training is interrupted after three epochs and resumed from its checkpoint."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SEED = 390
WINDOW, BATCH, STEPS, EPOCHS = 64, 16, 20, 8


def recording(length, generator):
    """Colored noise with decaying clicks; the target is whether a click begins within a part of the window."""
    noise = torch.randn(length, generator=generator)
    sound = noise + 0.6 * noise.roll(1) + 0.3 * noise.roll(2)
    begins = torch.rand(length, generator=generator) < 0.02
    shape = torch.exp(-torch.arange(12) / 4) * torch.sin(torch.arange(12) * 1.3 + 1)
    clicks = torch.zeros(length)
    for at in begins.nonzero()[:, 0].tolist():
        if at + 12 < length:
            clicks[at : at + 12] += 4.0 * shape
    return sound + clicks, begins.float()


def cut(sound, begins, starts):
    index = starts[:, None] + torch.arange(WINDOW)
    return sound[index][:, None], begins[index].view(-1, 8, WINDOW // 8).amax(2)


class Detector(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.listen = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4),
            nn.ReLU(),
            nn.Dropout1d(0.1),
            nn.Conv1d(width, 2 * width, 9, padding=4, stride=2),
            nn.ReLU(),
            nn.Conv1d(2 * width, width, 5, padding=2, stride=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(width, 1, 1),
        )

    def forward(self, x):
        return self.listen(x)[:, 0]


class Run:
    def __init__(self, folder="run"):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.path = os.path.join(folder, "last.pt")
        if self.rank == 0:
            os.makedirs(folder, exist_ok=True)
        generator = torch.Generator().manual_seed(SEED)
        self.sound, self.begins = recording(6000, generator)
        self.test = cut(*recording(20000, generator), torch.arange(0, 19000, WINDOW))
        torch.manual_seed(SEED + self.rank)
        self.model = DistributedDataParallel(Detector())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2, weight_decay=0.02)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, 1e-2, total_steps=EPOCHS * STEPS, pct_start=0.2
        )
        self.epoch = 0

    def save(self):
        states = [None] * self.world
        dist.all_gather_object(states, torch.get_rng_state())
        if self.rank == 0:
            checkpoint = {
                "epoch": self.epoch,
                "model": self.model.module.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "random": states,
            }
            torch.save(checkpoint, self.path)
        dist.barrier()

    def resume(self):
        checkpoint = torch.load(self.path)
        self.model.module.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.scheduler.load_state_dict(checkpoint["scheduler"])
        self.epoch = checkpoint["epoch"]
        torch.set_rng_state(checkpoint["random"][self.rank])

    def train(self, until):
        while self.epoch < until:
            self.model.train()
            for _ in range(STEPS):
                starts = torch.randint(len(self.sound) - WINDOW, (BATCH,))
                sound, target = cut(self.sound, self.begins, starts)
                sound = sound * (0.8 + 0.4 * torch.rand(BATCH, 1, 1))
                loss = nn.functional.binary_cross_entropy_with_logits(self.model(sound), target)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
            self.epoch += 1
            self.report(loss.item())

    def report(self, loss):
        self.model.eval()
        with torch.no_grad():
            scores = self.model.module(self.test[0])
        error = nn.functional.binary_cross_entropy_with_logits(scores, self.test[1])
        if self.rank == 0:
            print(f"epoch {self.epoch}  loss {loss:.3f}  test error {error.item():.4f}")


dist.init_process_group("gloo")
first = Run()
first.train(until=3)
first.save()
second = Run()
second.resume()
second.train(until=EPOCHS)
dist.destroy_process_group()
