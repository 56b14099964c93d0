import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

query = torch.randn(1, 2, 8, 64, device="cuda", dtype=torch.float16)
with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    print(torch.nn.functional.scaled_dot_product_attention(query, query, query).shape)
