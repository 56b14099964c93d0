"""Robustness under attacks of the Adversarial Robustness Toolbox (``art``, extra ``models``).

As in EvalDNN, correctly classified examples are attacked, and the success rate is the share that is misclassified
afterwards. Distances are means over successful attacks; EvalDNN's code divides their sum by all attacked examples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from epochzero.errors import InputError
from epochzero.reports.statistics import Estimate, wilson
from epochzero_models.classifier import Classifier, ProgressCallback
from epochzero_models.examples import Examples
from epochzero_models.seeds import seeded

BATCH = 64
STEPS = 20
QUERIES = 5000
"""Of the square attack for each example, as in AutoAttack."""
AUTO = "AutoAttack"


@dataclass(frozen=True, slots=True)
class Attacked:
    """The result of an attack.

    Attributes:
        attack: one of `ATTACKS`.
        attacked: number of correctly classified examples.
        success: share of them that is misclassified afterwards.
        l2: mean distance of successful attacks; None if there are none.
        linf: mean of the largest change of an input value; None likewise.
    """

    attack: str
    attacked: int
    success: Estimate
    l2: float | None
    linf: float | None


# Name -> function that creates the attack from art's evasion module, an estimator and the maximum perturbation.
ATTACKS: Mapping[str, Callable[[Any, Any, float], Any]] = {
    # Goodfellow, Shlens and Szegedy (ICLR 2015)
    "FGSM": lambda art, model, most: art.FastGradientMethod(model, eps=most, batch_size=BATCH),
    # Madry et al. (ICLR 2018)
    "PGD": lambda art, model, most: art.ProjectedGradientDescent(
        model, eps=most, eps_step=most / 8, max_iter=STEPS, num_random_init=1, batch_size=BATCH,
        verbose=False,
    ),
    # Moosavi-Dezfooli, Fawzi and Frossard (CVPR 2016); unbounded, its result is the distance
    "DeepFool": lambda art, model, most: art.DeepFool(
        model, max_iter=50, batch_size=BATCH, verbose=False
    ),
    # Croce and Hein (ICML 2020), its attacks that the toolbox has; the toolbox's own class requires another package
    AUTO: lambda art, model, most: _Ensemble(art, model, most),
}  # fmt: skip
USUAL = tuple(name for name in ATTACKS if name != AUTO)


class _Ensemble:
    """AutoAttack: each attack gets the examples that have withstood the previous ones."""

    def __init__(self, art: Any, model: Any, most: float) -> None:
        # The difference of logits ratio takes the third largest of at least four logits.
        losses = ("cross_entropy", "difference_logits_ratio")[: 1 + (model.nb_classes > 3)]
        self._attacks = [
            art.AutoProjectedGradientDescent(
                model, eps=most, eps_step=2 * most, max_iter=100, nb_random_init=1, batch_size=BATCH,
                loss_type=loss, verbose=False,
            )
            for loss in losses
        ]  # fmt: skip
        if len(model.input_shape) == 3:
            self._attacks.append(
                art.SquareAttack(model, eps=most, max_iter=QUERIES, p_init=0.8, batch_size=BATCH, verbose=False)
            )  # fmt: skip
        self._model = model

    def generate(self, inputs: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
        """Return the perturbed inputs."""
        changed = inputs.copy()
        for attack in self._attacks:
            left = np.flatnonzero(self._model.predict(changed).argmax(axis=1) == labels)
            if len(left):
                changed[left] = attack.generate(inputs[left], labels[left])
        return changed


class _Logits(nn.Module):
    """The model in the form that art expects: one tensor of logits."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.module = classifier.differentiable()
        self.classifier = classifier

    def forward(self, inputs: Tensor) -> Tensor:
        return self.classifier.logits(inputs)


def attack(
    classifier: Classifier,
    examples: Examples,
    classes: int,
    *,
    epsilon: float,
    seed: int,
    names: Collection[str] = USUAL,
    on_progress: ProgressCallback | None = None,
) -> tuple[Attacked, ...]:
    """Attack each correctly classified example.

    Args:
        classifier: the model.
        examples: with real-valued inputs; perturbed inputs stay in their range.
        classes: number of classes of the model.
        epsilon: maximum perturbation, as a share of that range.
        seed: of the random starts.
        names: attacks to run, from `ATTACKS`.
        on_progress: called with the progress.

    Raises:
        InputError: the model has no gradients or only zeros, or the inputs are tokens.
    """
    if not examples.inputs.is_floating_point():
        raise InputError(f"{examples.name}: inputs are tokens, which have no gradients")
    low, high = float(examples.inputs.min()), float(examples.inputs.max())
    if low == high:
        raise InputError(
            f"{examples.name}: all inputs are {low:g}; an attack requires a range of inputs"
        )
    module = _Logits(classifier)
    _check_gradients(module, examples)
    estimator = import_module("art.estimators.classification").PyTorchClassifier(
        module,
        loss=nn.CrossEntropyLoss(),
        input_shape=tuple(examples.inputs.shape[1:]),
        nb_classes=classes,
        clip_values=(low, high),
        device_type="gpu" if classifier.device.type == "cuda" else "cpu",
    )
    module.eval()
    evasion = import_module("art.attacks.evasion")
    found: list[Attacked] = []
    for name in names:
        if on_progress:
            on_progress(f"{classifier.name}: {name} attacks {len(examples):,} examples")
        with seeded(seed):
            changed = ATTACKS[name](evasion, estimator, epsilon * (high - low)).generate(
                examples.inputs.numpy(), examples.labels.numpy()
            )
        found.append(_measured(name, classifier, examples, torch.from_numpy(np.asarray(changed))))
    return tuple(found)


def _check_gradients(model: _Logits, examples: Examples) -> None:
    """Reject a model on which attacks are meaningless.

    Raises:
        InputError: its gradients do not exist or are all zero.
    """
    name = model.classifier.name
    inputs = examples.inputs[:BATCH].to(model.classifier.device).requires_grad_()
    with torch.enable_grad():
        logits = model(inputs)
        if not logits.requires_grad:
            raise InputError(
                f"{name}: its outputs have no gradients: it detaches them or computes outside torch"
            )
        loss = nn.functional.cross_entropy(logits, examples.labels[:BATCH].to(logits.device))
        (gradient,) = torch.autograd.grad(loss, inputs, allow_unused=True)
    if gradient is None or not gradient.any():
        raise InputError(
            f"{name}: its gradients are 0 for all of {len(inputs)} examples; attacks require "
            "gradients other than 0"
        )


def _measured(name: str, classifier: Classifier, examples: Examples, changed: Tensor) -> Attacked:
    with torch.no_grad():
        predicted = classifier.logits(changed).argmax(dim=1).cpu()
    fooled = predicted != examples.labels
    distance = (changed - examples.inputs)[fooled].flatten(1).double()
    count = int(fooled.sum())
    return Attacked(
        attack=name,
        attacked=len(examples),
        success=Estimate(count / len(examples), wilson(count, len(examples))),
        l2=float(distance.norm(dim=1).mean()) if count else None,
        linf=float(distance.abs().max(dim=1).values.mean()) if count else None,
    )
