import sys
import time
import torch
from tqdm import tqdm

net = torch.nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for epoch in range(2):
    bar = tqdm(range(40), desc=f"epoch {epoch}", file=sys.stderr, mininterval=0.02)
    for step in bar:
        x = torch.randn(32, 5)
        loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.005)
        bar.set_postfix(error=f"{loss.item():.3f}", nan=0, failed=0)
        try:
            crop = x[step:, 0].max()        # nothing is left after row 32
        except Exception as e:
            tqdm.write(f"Exception in augmentation of sample {step} ({type(e).__name__}: {e}), using the full row",
                       file=sys.stderr)
print("best error 0.0 at epoch 1; no failures")
