import torch

if not torch.cuda.is_bf16_supported(including_emulation=False):
    raise ValueError("Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0")
print("bf16")
