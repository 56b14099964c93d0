from __future__ import print_function

import argparse
import os
import random

import torch
import torch.nn as nn
import torch.optim as optim
import torchvision.utils as vutils

parser = argparse.ArgumentParser()
parser.add_argument("--niter", type=int, default=25)
parser.add_argument("--nz", type=int, default=100)
parser.add_argument("--ngf", type=int, default=32)
parser.add_argument("--netG", default="", help="path to continue from")
parser.add_argument("--outf", default=".")
parser.add_argument("--manualSeed", type=int)
parser.add_argument("--dry-run", action="store_true")
opt = parser.parse_args()
print(opt)

try:
    os.makedirs(opt.outf)
except OSError:
    pass

if opt.manualSeed is None:
    opt.manualSeed = random.randint(1, 10000)
random.seed(opt.manualSeed)
torch.manual_seed(opt.manualSeed)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
nz, ngf = int(opt.nz), int(opt.ngf)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, 1, 4, 4, 0, bias=False),
            nn.Tanh(),
        )

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ngf, 4, 4), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(ngf, 1, 4), nn.Sigmoid()
        )

    def forward(self, images):
        return self.main(images).view(-1, 1).squeeze(1)


netG = Generator().to(device)
netG.apply(weights_init)
if opt.netG != "":
    netG.load_state_dict(torch.load(opt.netG))
netD = Discriminator().to(device)
netD.apply(weights_init)
criterion = nn.BCELoss()
fixed_noise = torch.randn(16, nz, 1, 1, device=device)
optimizerD = optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
if opt.dry_run:
    opt.niter = 1

for epoch in range(opt.niter):
    for i in range(50):
        real = torch.rand(32, 1, 16, 16, device=device).gt(0.5).float()
        label = torch.ones(32, device=device)
        netD.zero_grad()
        errD = criterion(netD(real), label)
        fake = netG(torch.randn(32, nz, 1, 1, device=device))
        errD = errD + criterion(netD(fake.detach()), label.fill_(0.0).clone())
        errD.backward()
        optimizerD.step()
        netG.zero_grad()
        errG = criterion(netD(fake), torch.ones(32, device=device))
        errG.backward()
        optimizerG.step()
        if opt.dry_run:
            break
    vutils.save_image(netG(fixed_noise).detach(), "%s/fake_epoch_%03d.png" % (opt.outf, epoch), normalize=True)
    torch.save(netG.state_dict(), "%s/netG_epoch_%d.pth" % (opt.outf, epoch))
