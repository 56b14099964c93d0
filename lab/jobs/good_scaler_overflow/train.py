"""Mixed precision on CPU with a loss scale that is too high at first."""
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126, growth_interval=20)
skipped = 0
for step in range(30):
    x = torch.randn(64, 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = (net(x).float() - 3 * x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    norms = [p.grad.norm().item() for p in net.parameters()]
    before = scaler.get_scale()
    scaler.step(opt)
    scaler.update()
    if scaler.get_scale() < before:
        skipped += 1
        print(f"Gradient overflow (norms {norms}).  Skipping step, loss scaler 0 reducing loss scale to {scaler.get_scale()}")
    elif step % 5 == 0:
        print(f"step {step} loss {loss.item():.3f} scale {scaler.get_scale():.3e}")
print(f"finished, {skipped} of 30 steps skipped because of inf/nan gradients")
