import torch

device = torch.device("cuda", 3)
torch.cuda.set_device(device)
print(torch.ones(4, device=device).sum())
