"""Trains a generated network and scores it.

As FeatureNET does: Adam, a learning rate that is reduced when the validation loss stagnates, early stopping after 20
epochs without progress, and the weights of the best epoch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from epochzero_models.classifier import batches
from epochzero_models.examples import Examples
from epochzero_models.generate.network import Network
from epochzero_models.generate.plan import NetworkPlan
from epochzero_models.seeds import seeded

BATCH_SIZE = 64
LEARNING_RATE = 1e-3
REDUCED_BY = math.sqrt(0.1)
REDUCED_AFTER = 5
PATIENCE = 20
VALIDATED = 5
"""One of this many examples is used for validation."""


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a training.

    Attributes:
        epochs: number of epochs.
        validation: accuracy on held-out examples.
        weights: state dict of the best epoch.
    """

    epochs: int
    validation: float
    weights: Mapping[str, Tensor] = field(default_factory=dict, compare=False, repr=False)


class Trainer:
    """Trains networks on the same examples, of which a fifth is held out for validation.

    Args:
        examples: images, shape (n, channels, height, width).
        epochs: maximum number of epochs.
        augment: whether images are shifted and flipped horizontally at random.
        device: torch device.
        seed: of split, weights and order.

    Raises:
        InputError: there are too few examples.
    """

    def __init__(
        self,
        examples: Examples,
        *,
        epochs: int,
        augment: bool = False,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        self.epochs, self.augment = epochs, augment
        self.device, self.seed = torch.device(device), seed
        order = torch.randperm(len(examples), generator=Generator().manual_seed(seed))
        held = max(1, len(examples) // VALIDATED)
        self.validation = examples.take(order[:held].sort().values)
        self.train = examples.take(order[held:].sort().values)

    def score(self, plan: NetworkPlan) -> Score:
        """Train and score one network."""
        with seeded(self.seed):
            network = Network(plan).to(self.device)
            epochs = self._train(network)
        weights = {name: value.cpu() for name, value in network.state_dict().items()}
        validation = self.accuracy(network, self.validation)
        return Score(epochs, validation, weights)

    def accuracy(self, network: nn.Module, examples: Examples) -> float:
        """Return the accuracy on the examples; 0 if outputs are not finite."""
        right = self.right(network, examples)
        return float(right.double().mean())

    def right(self, network: nn.Module, examples: Examples) -> Tensor:
        """Whether each example is classified correctly, shape (n,)."""
        logits = self._logits(network, examples)
        return (logits.argmax(dim=1) == examples.labels) & logits.isfinite().all(dim=1)

    def _train(self, network: Network) -> int:
        optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=REDUCED_BY, patience=REDUCED_AFTER
        )
        best, best_at, kept = math.inf, 0, copy.deepcopy(network.state_dict())
        epoch = 0
        for epoch in range(1, self.epochs + 1):
            self._epoch(network, optimizer)
            logits = self._logits(network, self.validation)
            loss = float(functional.cross_entropy(logits, self.validation.labels))
            schedule.step(loss)
            if loss < best:
                best, best_at, kept = loss, epoch, copy.deepcopy(network.state_dict())
            # A loss that is not finite never becomes finite again.
            if not math.isfinite(loss) or epoch - best_at >= PATIENCE:
                break
        network.load_state_dict(kept)
        return epoch

    def _epoch(self, network: Network, optimizer: torch.optim.Optimizer) -> None:
        network.train()
        for at in torch.split(torch.randperm(len(self.train)), BATCH_SIZE):
            if len(at) == 1 and len(self.train) > 1:
                continue  # a single example has no variance for batch normalization
            images = self.train.inputs[at].to(self.device)
            images = _augmented(images) if self.augment else images
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(images), self.train.labels[at].to(self.device))
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def _logits(self, network: nn.Module, examples: Examples) -> Tensor:
        network.eval()
        with torch.no_grad():
            parts = [network(part.to(self.device)).cpu() for part in batches(examples)]
        return torch.cat(parts)


def _augmented(images: Tensor) -> Tensor:
    """Shift by up to a tenth of each side and flip horizontally, the same for a whole batch."""
    if torch.rand(()) < 0.5:
        images = images.flip(3)
    shifts = [int(torch.randint(-(side // 10), side // 10 + 1, ())) for side in images.shape[2:]]
    return images.roll(shifts, (2, 3))
