import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Linear(256, 768)

    def forward(self, x):
        query, key, value = self.parts(x).view(*x.shape[:2], 3, 4, 64).permute(2, 0, 3, 1, 4)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return x + mixed.transpose(1, 2).flatten(2)


model = nn.Sequential(Block(), Block()).cuda()
x = torch.randn(4, 128, 256, device="cuda")
loss = model(x).pow(2).mean()
loss.backward()
print(f"loss {loss.item():.4f}")
