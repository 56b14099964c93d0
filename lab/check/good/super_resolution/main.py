from __future__ import print_function

import argparse
from math import log10

import torch
import torch.nn as nn
import torch.optim as optim
from model import Net
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="super resolution")
parser.add_argument("--upscale_factor", type=int, required=True)
parser.add_argument("--batchSize", type=int, default=64)
parser.add_argument("--nEpochs", type=int, default=2)
parser.add_argument("--seed", type=int, default=123)
opt = parser.parse_args()
torch.manual_seed(opt.seed)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pictures(count, factor):
    large = torch.rand(count, 1, 24 * factor, 24 * factor)
    return TensorDataset(nn.functional.avg_pool2d(large, factor), large)


training = DataLoader(pictures(512, opt.upscale_factor), batch_size=opt.batchSize, shuffle=True)
testing = DataLoader(pictures(64, opt.upscale_factor), batch_size=10)
model = Net(upscale_factor=opt.upscale_factor).to(device)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)


def train(epoch):
    epoch_loss = 0
    for batch in training:
        low, high = batch[0].to(device), batch[1].to(device)
        optimizer.zero_grad()
        loss = criterion(model(low), high)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    print("===> Epoch {}: {:.4f}".format(epoch, epoch_loss / len(training)))


def test():
    avg_psnr = 0
    with torch.no_grad():
        for low, high in testing:
            mse = criterion(model(low.to(device)), high.to(device))
            avg_psnr += 10 * log10(1 / mse.item())
    print("===> PSNR {:.4f} dB".format(avg_psnr / len(testing)))


def checkpoint(epoch):
    model_out_path = "model_epoch_{}.pth".format(epoch)
    torch.save(model, model_out_path)


for epoch in range(1, opt.nEpochs + 1):
    train(epoch)
    test()
    checkpoint(epoch)
