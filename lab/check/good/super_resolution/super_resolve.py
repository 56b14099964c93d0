import argparse

import torch
from model import Net

parser = argparse.ArgumentParser()
parser.add_argument("--model", type=str, required=True)
parser.add_argument("--cuda", action="store_true")
opt = parser.parse_args()
net = torch.load(opt.model, weights_only=False, map_location="cpu")
assert isinstance(net, Net)
with torch.no_grad():
    out = net(torch.rand(1, 1, 24, 24))
print(tuple(out.shape))
