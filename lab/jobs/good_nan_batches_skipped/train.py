import torch

torch.manual_seed(3)
net = torch.nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
bad = 0
for it in range(1, 41):
    x = torch.rand(16, 6) - 0.2
    target = x.sum(1).log()                 # nan when the sum is negative
    loss = torch.nn.functional.mse_loss(net(x)[:, 0], target)
    if not torch.isfinite(loss):
        bad += 1
        print(f"iter {it}: Loss is {loss.item()}, skipping this batch (RuntimeWarning: invalid value)")
        if bad > 20:
            raise SystemExit("Loss is nan, stopping training")
        continue
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 5 == 0:
        print(f"iter {it}: loss {loss.item():.4f}, skipped {bad}")
print(f"done, {bad} nan batches skipped")
