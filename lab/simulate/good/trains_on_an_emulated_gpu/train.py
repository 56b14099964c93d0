import torch

torch.set_num_threads(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(16, 4).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = model(torch.randn(8, 16, device=device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step + 1}/3 loss {loss.item():.3f}", flush=True)
torch.save({name: value.cpu() for name, value in model.state_dict().items()}, "model.pt")
