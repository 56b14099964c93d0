"""DeepLocalize on real trainings: which error comes first, in which layer and phase."""

from __future__ import annotations

import torch
from torch import nn

from epochzero.run.watch.model import TrainingFinding
from epochzero.study.training_faults.deeplocalize import find
from tests.study.training_faults.trainings import blobs, training, watched


def net(*, first: nn.Module | None = None) -> nn.Module:
    return nn.Sequential(first or nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))


def root(**changed: object) -> TrainingFinding:
    found = find(watched(training(**{"model": net, **changed}))).root  # type: ignore[arg-type]
    assert found is not None
    return found


def test_a_training_without_errors_yields_nothing() -> None:
    history = watched(training(net, rate=0.001, epochs=3))
    assert history.iterations
    assert find(history).root is None


def test_an_input_that_is_no_number_is_an_error_in_forward_of_the_first_layer() -> None:
    def broken() -> tuple[torch.Tensor, torch.Tensor]:
        inputs, targets = blobs()
        inputs[:, 1] = torch.nan
        return inputs, targets

    found = root(data=broken)
    assert (found.word, found.layer) == ("activation_not_finite", "0")
    assert found.evidence == {"phase": "forward", "error": "invalid"}
    assert found.text == "Batch 0 layer 0: error in forward."
    assert found.place is not None
    assert "nn.Linear(4, 16)" in found.place.text


def test_weights_that_are_zero_show_in_forward_first() -> None:
    def zeros() -> nn.Module:
        model = net()
        for parameter in model.parameters():
            nn.init.zeros_(parameter)
        return model

    assert root(model=zeros).evidence == {"phase": "forward", "error": "zero"}


def test_a_dead_layer_is_told_by_its_activation() -> None:
    def dead() -> nn.Module:
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        nn.init.constant_(model[0].bias, -50.0)  # type: ignore[arg-type]
        return model

    found = root(model=dead)
    assert (found.word, found.layer, found.since) == ("dead_units", "1", 0)


def test_steps_of_no_length_leave_the_weights_unchanged_after_five_batches() -> None:
    found = root(rate=0.0)
    assert (found.word, found.layer, found.since) == ("weights_unchanged", "2", 4)
    assert found.evidence["phase"] == "weights"


def test_a_loss_that_overflows_is_an_error() -> None:
    """The outputs are finite still when their squares are not."""
    found = root(
        loss=lambda: nn.MSELoss(),
        data=lambda: (blobs()[0], 1e30 * torch.ones(192, 3)),
        epochs=1,
    )
    assert (found.word, found.text) == ("loss_not_a_number", "Batch 0: invalid loss.")


def test_a_frozen_layer_is_no_error() -> None:
    def frozen() -> nn.Module:
        model = net()
        for parameter in model[0].parameters():  # type: ignore[index]
            parameter.requires_grad_(False)
        return model

    assert find(watched(training(frozen, rate=0.001, epochs=3))).root is None
