import torch

torch.set_num_threads(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
size = 128
while True:
    try:
        batch = torch.zeros(size, 1024, 1024, device=device)
        break
    except torch.OutOfMemoryError:
        size //= 2
        print(f"batch of {size}", flush=True)
print(f"trained with {size}")
