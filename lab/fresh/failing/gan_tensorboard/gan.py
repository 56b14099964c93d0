import argparse
import time

import torch
from torch import nn

from tools.writers import make_writer


class Generator(nn.Module):
    def __init__(self, noise=16):
        super().__init__()
        self.noise = noise
        self.net = nn.Sequential(nn.Linear(noise, 64), nn.ReLU(), nn.Linear(64, 2))

    def sample(self, count, device):
        return self.net(torch.randn(count, self.noise, device=device))


def ring(count, device):
    angle = torch.rand(count, device=device) * 2 * torch.pi
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.02 * torch.randn(count, 2, device=device)


def main():
    parser = argparse.ArgumentParser(description="a GAN of a ring")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--log", choices=["none", "scalars"], default="none")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = Generator().to(device)
    critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)).to(device)
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    c_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    writer = make_writer(args.log, f"runs/{int(time.time())}")
    ones, zeros = torch.ones(args.batch, 1, device=device), torch.zeros(args.batch, 1, device=device)
    for step in range(args.steps):
        fake = generator.sample(args.batch, device)
        c_loss = bce(critic(ring(args.batch, device)), ones) + bce(critic(fake.detach()), zeros)
        c_optimizer.zero_grad()
        c_loss.backward()
        c_optimizer.step()
        g_loss = bce(critic(fake), ones)
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        if step % 50 == 0:
            writer.add_scalar("loss/critic", c_loss.item(), step)
            writer.add_scalar("loss/generator", g_loss.item(), step)
    writer.close()
    torch.save(generator.state_dict(), "generator.pt")


if __name__ == "__main__":
    main()
