"""What waits in the memory of the CPU comes back as it was."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import epochzero
from epochzero.errors import InputError
from tests.run.memory.training import network


def _gradients(model: nn.Module, x: Tensor) -> list[Tensor]:
    model.zero_grad()
    model(x).square().sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_gradients_are_the_same_bit_for_bit_with_less_memory(ahead: int) -> None:
    model, x = network(), torch.randn(256, 16)
    with epochzero.memory.simulated_limit(1 << 40) as limit:
        expected = _gradients(model, x)
    with (
        epochzero.memory.simulated_limit(limit.peak * 2 // 3),
        epochzero.memory.offload(smallest=4096, ahead=ahead) as moved,
    ):
        found = _gradients(model, x)
    assert all(map(torch.equal, found, expected))
    assert 0 < moved.bytes_out <= moved.bytes_back
    assert moved.seconds > 0


def test_a_second_backward_finds_all_again() -> None:
    x = torch.randn(64, 64, requires_grad=True)
    with epochzero.memory.simulated_limit(1 << 30), epochzero.memory.offload(smallest=0):
        y = (x.sin() * x.cos()).sum()
        (first,) = torch.autograd.grad(y, x, retain_graph=True)
        (second,) = torch.autograd.grad(y, x)
    assert torch.equal(first, second)


def test_a_tensor_saved_twice_is_moved_once() -> None:
    x = torch.randn(64, 64)
    layers = [nn.Linear(64, 64) for _ in range(3)]
    with epochzero.memory.simulated_limit(1 << 30), epochzero.memory.offload(smallest=0) as moved:
        h = x.sin()
        sum(layer(h).sum() for layer in layers).backward()
    assert moved.bytes_out == h.nbytes


def test_only_what_the_module_saves_is_moved() -> None:
    cold, warm = network(), network()
    x = torch.randn(32, 16)
    with epochzero.memory.simulated_limit(1 << 30):
        with epochzero.memory.offload(smallest=0) as of_all:
            _gradients(cold, x)
        with epochzero.memory.offload(cold, smallest=0) as of_cold:
            _gradients(warm, x)
            assert of_cold.bytes_out == 0
            _gradients(cold, x)
    assert 0 < of_cold.bytes_out <= of_all.bytes_out
    assert not cold._forward_hooks


def test_optimizer_states_are_away_but_for_the_step() -> None:
    models = [network(), network()]
    models[1].load_state_dict(models[0].state_dict())
    x = torch.randn(8, 16)
    peaks = []
    for model, moves in zip(models, (False, True), strict=True):
        optimizer = torch.optim.AdamW(model.parameters())
        with epochzero.memory.simulated_limit(1 << 30) as limit:
            cold = [optimizer] if moves else []
            with epochzero.memory.offload(*cold, smallest=1024 if moves else 1 << 30) as moved:
                for _ in range(3):
                    optimizer.zero_grad()
                    model(x).square().sum().backward()
                    peaks.append(limit.now)
                    optimizer.step()
    assert peaks[-1] < peaks[2]
    assert moved.bytes_out == moved.bytes_back > 0
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(one, other)


def test_without_a_gpu_nothing_is_moved() -> None:
    with epochzero.memory.offload(smallest=0) as moved:
        _gradients(network(), torch.randn(8, 16))
    assert moved.bytes_out == 0


def test_what_cannot_be_moved_is_refused() -> None:
    with pytest.raises(InputError, match="int is neither a module nor an optimizer"):
        epochzero.memory.offload(3)
    with pytest.raises(InputError, match="must not be negative"):
        epochzero.memory.offload(ahead=-1)
