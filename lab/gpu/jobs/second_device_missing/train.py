import json

import torch
from torch import nn

config = json.loads('{"encoder": "cuda:0", "decoder": "cuda:7", "width": 128}')
encoder = nn.Linear(32, config["width"]).to(config["encoder"])
decoder = nn.Linear(config["width"], 32).to(config["decoder"])
x = torch.randn(16, 32, device=config["encoder"])
loss = decoder(encoder(x).to(config["decoder"])).pow(2).mean()
loss.backward()
print(f"loss {loss.item():.4f}")
