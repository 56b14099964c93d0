"""Measures of a network, by hand and beside other libraries'."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss, top_k_accuracy_score
from torch import Tensor, nn

from epochzero.reports.page import to_html
from epochzero_models import Classifier, Evaluation, Examples, evaluate
from epochzero_models.classifier import as_classifier
from epochzero_models.evaluate.calibration import (
    brier_scores,
    expected_calibration_error,
    reliability,
)
from epochzero_models.evaluate.corruptions import SEVERITIES, corrupted
from epochzero_models.evaluate.coverage import neuron_coverage
from epochzero_models.evaluate.report import evaluation_report

Data = tuple[Examples, Examples]


@pytest.fixture(scope="module")
def evaluation(net: nn.Module, data: Data) -> Evaluation:
    groups = tuple("ab"[int(label) % 2] for label in data[1].labels)
    test = Examples("digits", data[1].inputs, data[1].labels, groups=groups)
    torch.manual_seed(0)
    untrained = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    return evaluate([net, untrained], test, attacks=False)


def test_accuracy_and_loss_are_those_of_scikit_learn(
    evaluation: Evaluation, net: nn.Module, data: Data
) -> None:
    with torch.no_grad():
        probabilities = net(data[1].inputs).double().softmax(dim=1).numpy()
    labels = data[1].labels.numpy()
    first = evaluation.models[0]
    for k in (1, 5):
        assert first.top[k].value == pytest.approx(top_k_accuracy_score(labels, probabilities, k=k))
    assert first.log_loss.value == pytest.approx(log_loss(labels, probabilities), rel=1e-5)


def test_groups_add_up(evaluation: Evaluation) -> None:
    first = evaluation.models[0]
    right = sum(group.examples * (group.accuracy.value or 0) for group in first.groups)
    assert right / evaluation.examples == pytest.approx(first.top[1].value)


def test_models_are_compared_on_the_same_examples(evaluation: Evaluation) -> None:
    first, second = (model.top[1].value or 0 for model in evaluation.models)
    accuracy = evaluation.differences[0]
    assert accuracy.measure == "accuracy"
    assert accuracy.difference.value == pytest.approx(second - first)
    assert accuracy.difference.interval is not None
    assert accuracy.difference.interval[1] < 0


def test_calibration_by_hand() -> None:
    confidence = np.array([0.95, 0.95, 0.55, 0.55])
    right = np.array([True, True, True, False])
    # Bins of 1/15: two predictions at 0.95 that are all right, two at 0.55 of which half are.
    found = expected_calibration_error(confidence, right, 0)
    assert found.value == pytest.approx((2 * 0.05 + 2 * 0.05) / 4)
    assert [(each_bin.count, each_bin.accuracy) for each_bin in reliability(confidence, right)] == [
        (2, 0.5), (2, 1.0)
    ]  # fmt: skip
    scores = brier_scores(np.array([[0.7, 0.2, 0.1]]), np.array([1]))
    assert scores[0] == pytest.approx(0.7**2 + 0.8**2 + 0.1**2)


def test_the_interval_of_the_calibration_error_contains_it() -> None:
    draw = np.random.default_rng(0)
    confidence = draw.uniform(0.9, 1, 800)
    # Calibrated: what is measured is chance, and 0 is true.
    found = expected_calibration_error(confidence, draw.uniform(size=800) < confidence, 0)
    assert found.value is not None
    assert found.interval is not None
    low, high = found.interval
    assert low == 0 < found.value < high < 0.1


def test_coverage_is_that_of_a_plain_loop(net: nn.Module, data: Data) -> None:
    few = data[1].take(torch.arange(20))
    outputs: list[Tensor] = []
    handles = [
        module.register_forward_hook(lambda layer, given, output: outputs.append(output.detach()))
        for module in net.modules()
        if not list(module.children())
    ]
    net(few.inputs)
    for handle in handles:
        handle.remove()
    highest: list[float] = []
    for output in outputs:
        scaled = [(value - value.min()) / (value.max() - value.min()) for value in output.numpy()]
        for channel in range(output.shape[1]):
            highest.append(max(float(value[channel].mean()) for value in scaled))
    for threshold, share in neuron_coverage(as_classifier(net), few):
        assert share == pytest.approx(np.mean([number > threshold for number in highest]))


def test_a_layer_that_is_constant_covers_nothing() -> None:
    still = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    nn.init.zeros_(still[0].weight)
    nn.init.zeros_(still[0].bias)
    found = neuron_coverage(
        as_classifier(still), Examples("e", torch.rand(5, 3), torch.zeros(5).long())
    )
    assert found[0][1] <= 2 / 6


@pytest.mark.parametrize("shape", [(6, 3, 8, 8), (6, 5)])
def test_corruptions_grow_and_follow_the_seed(shape: tuple[int, ...]) -> None:
    inputs = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    before = inputs.clone()
    first, again = (list(corrupted(inputs, seed=3)) for _ in range(2))
    assert torch.equal(inputs, before)
    assert all(torch.equal(a, b) for (_, _, a), (_, _, b) in zip(first, again, strict=True))
    assert all(changed.shape == inputs.shape for _, _, changed in first)
    for name in {name for name, _, _ in first}:
        distances = [float((c - inputs).abs().mean()) for n, _, c in first if n == name]
        assert len(distances) == len(SEVERITIES)
        assert 0 < distances[0] < distances[-1]


def test_images_with_channels_last_are_corrupted_like_others() -> None:
    images = torch.rand((3, 1, 8, 6), generator=torch.Generator().manual_seed(0))
    first, last = corrupted(images, seed=3), corrupted(images.movedim(1, 3), seed=3)
    for (*name, expected), (*own, changed) in zip(first, last, strict=True):
        assert own == name
        assert torch.equal(changed, expected.movedim(1, 3))


class Linear(nn.Module):
    """Two classes by one weight for each input, for results that can be computed by hand."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: Tensor) -> Tensor:
        score = x @ self.weight
        return torch.stack((-score, score), dim=1)


@pytest.mark.filterwarnings("ignore")
def test_fgsm_fools_a_linear_model_as_computed() -> None:
    from epochzero_models.evaluate.attacks import attack

    weight = torch.tensor([1.0, -2.0, 0.5])
    inputs = torch.rand(80, 3, generator=torch.Generator().manual_seed(1)) * 2 - 1
    inputs[0], inputs[1] = 1.0, -1.0
    labels = (inputs @ weight > 0).long()
    epsilon = 0.1
    fgsm, pgd, deepfool = attack(
        as_classifier(Linear(weight)), Examples("e", inputs, labels), 2, epsilon=epsilon, seed=0
    )
    # Each number moves by epsilon of the range, against its weight, and stays within the range.
    side = torch.where(labels == 1, -1.0, 1.0)[:, None]
    moved = (inputs + side * weight.sign() * epsilon * 2).clamp(-1, 1)
    fooled = ((moved @ weight > 0).long() != labels).double().mean()
    assert fgsm.success.value == pytest.approx(float(fooled))
    assert pgd.success.value == pytest.approx(float(fooled))
    assert deepfool.success.value == 1.0
    assert fgsm.linf is not None
    assert fgsm.linf <= 2 * epsilon + 1e-6


@pytest.mark.filterwarnings("ignore")
def test_autoattack_is_bounded_and_no_weaker_than_pgd(net: nn.Module, data: Data) -> None:
    with torch.no_grad():
        right = net(data[1].inputs).argmax(dim=1) == data[1].labels
    few = data[1].take(right.nonzero()[:20, 0])
    (found,) = evaluate([net], few, autoattack=True, epsilon=0.1, seed=1).models
    _, pgd, _, auto = found.attacks
    assert [attack.attack for attack in found.attacks] == ["FGSM", "PGD", "DeepFool", "AutoAttack"]
    assert (auto.success.value or 0) >= (pgd.success.value or 0) > 0
    assert auto.linf is not None
    assert auto.linf <= 0.1 + 1e-6
    assert set(found.latency_ms) == {1}


def test_attacks_are_those_of_art_itself(net: nn.Module, data: Data) -> None:
    from art.attacks.evasion import DeepFool, FastGradientMethod, ProjectedGradientDescent
    from art.estimators.classification import PyTorchClassifier

    from epochzero_models.evaluate.attacks import attack
    from epochzero_models.seeds import seeded

    right = (net(data[1].inputs).argmax(dim=1) == data[1].labels).nonzero().flatten()[:16]
    few = data[1].take(right)
    low, high = float(few.inputs.min()), float(few.inputs.max())
    epsilon = 0.15 * (high - low)
    plain = PyTorchClassifier(
        net, nn.CrossEntropyLoss(), (1, 8, 8), 10, clip_values=(low, high), device_type="cpu"
    )
    ours = attack(as_classifier(net), few, 10, epsilon=0.15, seed=3)
    for found, made in zip(
        ours,
        (
            FastGradientMethod(plain, eps=epsilon, batch_size=64),
            ProjectedGradientDescent(
                plain, eps=epsilon, eps_step=epsilon / 8, max_iter=20, num_random_init=1,
                batch_size=64, verbose=False,
            ),
            DeepFool(plain, max_iter=50, batch_size=64, verbose=False),
        ),
        strict=True,
    ):  # fmt: skip
        with seeded(3):
            changed = torch.from_numpy(made.generate(few.inputs.numpy(), few.labels.numpy()))
        fooled = net(changed).argmax(dim=1) != few.labels
        distance = (changed - few.inputs)[fooled].flatten(1).norm(dim=1).mean()
        assert found.success.value == pytest.approx(float(fooled.double().mean()))
        assert found.l2 == pytest.approx(float(distance), rel=1e-5)


class Detached(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)[:, :10].detach()


class Rounded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)[:, :10].round()


@pytest.mark.parametrize(
    ("model", "told"), [(Detached(), "have no gradients"), (Rounded(), "gradients are 0 for all")]
)
def test_models_without_gradients_are_not_attacked(model: nn.Module, told: str, data: Data) -> None:
    (found,) = evaluate([model], data[1].take(torch.arange(60))).models
    assert not found.attacks
    assert told in found.left_out["attacks"]
    assert found.corruptions


def test_what_a_model_cannot_be_asked_is_left_out(data: Data) -> None:
    few = data[1].take(torch.arange(30))
    blind = Classifier(
        "blind", lambda x: x.flatten(1)[:, :10], torch.device("cpu"), None, "it has no gradients",
        "its layers are not shown",
    )  # fmt: skip
    (found,) = evaluate([blind], few, attacks=False).models
    assert found.left_out == {"neuron coverage": "blind: its layers are not shown"}
    assert found.corruptions


def test_the_result_is_json_and_a_page(evaluation: Evaluation) -> None:
    pytest.importorskip("matplotlib")
    assert json.loads(json.dumps(evaluation.to_dict()))["schema"] == "epochzero.model-evaluation/2"
    page = to_html(evaluation_report(evaluation))
    assert all(word in page for word in ("Reliability", "gaussian noise", "Differences", "top 5"))
