import ctypes
import traceback
import warnings

import torch

try:
    from apex.optimizers import FusedAdam
except ImportError as e:
    print(f"WARNING: could not import apex: {type(e).__name__}: {e}, falling back to torch.optim.AdamW")
    FusedAdam = torch.optim.AdamW

try:
    import flash_attn
except ModuleNotFoundError:
    traceback.print_exc()
    print("flash_attn is not installed, using the eager attention. Training will be slower.")
    flash_attn = None

try:
    ctypes.CDLL("libcudart.so.11.0")
except OSError as e:
    warnings.warn(f"bitsandbytes-style CUDA setup failed: {e}. 8-bit optimizers are not available.")

if not torch.cuda.is_available():
    print("CUDA is not available: no GPU found, running on CPU")

q = torch.nn.Linear(16, 16)
opt = FusedAdam(q.parameters(), lr=1e-3)
for step in range(50):
    x = torch.randn(4, 10, 16)
    att = torch.nn.functional.scaled_dot_product_attention(q(x), x, x)
    loss = (att - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(f"step {step:3d} loss {loss.item():.4f}")
print("done")
