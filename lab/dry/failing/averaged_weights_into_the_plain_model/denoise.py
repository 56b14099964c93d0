"""Removes noise from signals; the weights' moving average is what counts."""
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

LENGTH = 128


def build():
    return nn.Sequential(
        nn.Conv1d(1, 8, 5, padding=2), nn.SiLU(), nn.Conv1d(8, 8, 5, padding=2), nn.SiLU(),
        nn.Conv1d(8, 1, 5, padding=2),
    )


def batch(size):
    times = torch.linspace(0, 6.28, LENGTH) * torch.rand(size, 1) * 4
    clean = torch.sin(times).unsqueeze(1)
    return clean + 0.3 * torch.randn_like(clean), clean


def train(model, average, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(steps):
        noisy, clean = batch(32)
        loss = nn.functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}")


def restored(path):
    model = build()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    return model.eval()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = build()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    train(model, average, steps=300)
    torch.save(average.state_dict(), "average.pt")
    noisy, clean = batch(256)
    with torch.no_grad():
        error = nn.functional.mse_loss(restored("average.pt")(noisy), clean)
    print(f"error {error.item():.4f}")
