"""Smoke tests that the queue runs before it starts the real training."""
import pytest
import torch
from model import SiameseNet, contrastive_loss


@pytest.fixture
def model():
    torch.manual_seed(0)
    return SiameseNet(dim=16, embedding=8)


def test_embedding_size(model):
    assert model(torch.randn(4, 16)).shape == (4, 8)


def test_loss_goes_down(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    a, b = torch.randn(32, 16), torch.randn(32, 16)
    same = torch.randint(2, (32, 1)).float()
    losses = []
    for _ in range(5):
        loss = contrastive_loss(model(a), model(b), same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_margin_must_be_positive():
    with pytest.raises(ValueError):
        contrastive_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1), margin=-1.0)
