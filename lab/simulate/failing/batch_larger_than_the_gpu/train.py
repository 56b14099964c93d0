import torch

torch.set_num_threads(1)
device = torch.device("cuda")
batches = []
for number in range(8):
    batches.append(torch.zeros(16, 1024, 1024, device=device))
    print(f"batch {number + 1}/8", flush=True)
