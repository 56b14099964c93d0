import torch
import triton
import triton.language as tl


@triton.jit
def multiply(a, b, c, size, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, size, DEPTH):
        left = tl.load(a + rows[:, None] * size + (start + depth)[None, :])
        right = tl.load(b + (start + depth)[:, None] * size + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * size + columns[None, :], total.to(tl.float16))


def main():
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty_like(a)
    for block in (64, 128, 256):
        grid = (2048 // block, 2048 // block)
        multiply[grid](a, b, c, 2048, BLOCK=block, DEPTH=256, num_warps=8, num_stages=4)
        print(f"block {block} norm {c.float().norm().item():.1f}")


main()
