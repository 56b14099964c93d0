"""A network is dissected, guarded, kept and loaded again."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from epochzero.errors import InputError
from epochzero.reports.page import to_html
from epochzero_models import Dissection, Examples, Guard, dissect
from epochzero_models.classifier import as_classifier
from epochzero_models.cli.dissect import NAMES
from epochzero_models.dissect import read_dissector
from epochzero_models.dissect.detectors import DETECTORS
from epochzero_models.dissect.layers import MOST_FEATURES, choose_layers, pooled
from epochzero_models.dissect.report import dissection_report

Data = tuple[Examples, Examples]


@pytest.fixture(scope="module")
def dissection(net: nn.Module, data: Data) -> Dissection:
    return dissect(net, *data, detector="dissector linear")


def test_what_is_wrong_is_less_valid(dissection: Dissection) -> None:
    assert dissection.dissector.layers == ("first", "second", "third")
    assert dissection.chosen.auc.value is not None
    assert dissection.chosen.auc.value > 0.8
    assert {score.name for score in dissection.scores} == {
        "dissector linear", "dissector log", "dissector exp", "max softmax", "max logit", "energy",
        "Mahalanobis", "relative Mahalanobis", "nearest neighbors", "ViM", "DDU",
    }  # fmt: skip
    cut = dissection.chosen.cut
    assert cut.accuracy is not None
    assert dissection.accuracy.value is not None
    assert cut.accuracy > dissection.accuracy.value
    outputs = dissection.layers[-1]
    assert outputs.validity_right is not None
    assert outputs.validity_wrong is not None
    assert outputs.validity_right > outputs.validity_wrong


def test_the_same_seed_gives_the_same_result(
    dissection: Dissection, net: nn.Module, data: Data
) -> None:
    again, other = (dict(dissect(net, *data, seed=seed).to_dict()) for seed in (0, 1))
    first = dict(dissection.to_dict())
    for record in (first, again, other):
        del record["overhead"]
    assert json.dumps(first) == json.dumps(again)
    assert json.dumps(first) != json.dumps(other)


def test_the_model_stays_as_it_was(net: nn.Module, data: Data) -> None:
    before = {name: value.clone() for name, value in net.state_dict().items()}
    dissect(net, data[0], data[1], layers=["third"])
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not any(module._forward_hooks for module in net.modules())


def test_a_guard_rejects_what_was_measured(
    dissection: Dissection, net: nn.Module, data: Data, tmp_path: Path
) -> None:
    dissection.dissector.save(tmp_path / "kept")
    guard = Guard(net, tmp_path / "kept")
    reported = data[1].halves(0)[1]
    guarded = guard(reported.inputs)
    assert torch.equal(guarded.predicted, net(reported.inputs).argmax(dim=1))
    assert float(guarded.within.double().mean()) == dissection.chosen.cut.accepted
    rejected = guarded.accepted == -1
    assert torch.equal(rejected, ~guarded.within)
    assert torch.equal(guarded.accepted[~rejected], guarded.predicted[~rejected])
    # Noise is no digit.
    noise = torch.rand(200, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert guard(noise).score.mean() < guarded.score.mean()


@pytest.mark.parametrize("name", DETECTORS)
def test_each_detector_is_exported_and_read_again(
    name: str, net: nn.Module, data: Data, tmp_path: Path
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    few = tuple(examples.take(torch.arange(200)) for examples in data)
    dissection = dissect(net, *few, detector=name)
    assert dissection.dissector.name == name
    dissection.dissector.save(tmp_path)
    guard = Guard(net, tmp_path)
    guard.export(tmp_path / "new" / "guarded.onnx", data[1].inputs[:2])
    session = runtime.InferenceSession(str(tmp_path / "new" / "guarded.onnx"))
    for count in (50, 1, 0):
        inputs = data[1].inputs[:count]
        guarded = guard(inputs)
        predicted, score, within = session.run(None, {"inputs": inputs.numpy()})
        assert predicted.tolist() == guarded.predicted.tolist()
        assert score == pytest.approx(guarded.score.numpy(), rel=1e-3, abs=1e-4)
        # A threshold is the score of an example, which rounding may move to the other side.
        clear = (guarded.score - dissection.dissector.threshold).abs() > 1e-3 * guarded.score.abs()
        assert guarded.accepted.shape == (count,)
        assert within[clear.numpy()].tolist() == guarded.within[clear].tolist()


def test_the_recommended_detector_guards_by_default(net: nn.Module, data: Data) -> None:
    noise = torch.rand(200, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    beyond = Examples("noise", noise, torch.zeros(200, dtype=torch.long))
    dissection = dissect(net, *data, beyond=beyond)
    assert dissection.dissector.name == dissection.recommended != "dissector exp"
    assert dissection.chosen.name == dissection.recommended
    assert set(dissection.dissector.layers) <= {"first", "second", "third"}


def test_the_command_offers_all_detectors() -> None:
    assert tuple(DETECTORS) == NAMES


def test_a_folder_that_is_damaged_is_told_of(dissection: Dissection, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="epochzero model dissect --out"):
        read_dissector(tmp_path)
    dissection.dissector.save(tmp_path)
    assert read_dissector(tmp_path).layers == dissection.dissector.layers
    described = json.loads((tmp_path / "dissector.json").read_text())
    for wrong in (
        {"schema": "other/1"},
        {"detector": "oracle"},
        {"classes": 3},
        {"layers": ["a"] * 9},
    ):
        (tmp_path / "dissector.json").write_text(json.dumps({**described, **wrong}))
        with pytest.raises(InputError):
            read_dissector(tmp_path)
    (tmp_path / "dissector.json").write_text(json.dumps(described))
    np.savez(tmp_path / "detector.npz", **{"0.weight": np.array([{}], object)})
    with pytest.raises(InputError, match="is damaged"):
        read_dissector(tmp_path)


def test_a_guard_of_another_model_is_refused(dissection: Dissection) -> None:
    with pytest.raises(InputError, match="has no layer 'first'"):
        Guard(nn.Sequential(nn.Linear(4, 2)), dissection.dissector)


def test_a_guard_names_the_wrong_type_of_an_argument(
    dissection: Dissection, net: nn.Module, data: Data, tmp_path: Path
) -> None:
    program = torch.export.export(net, (data[1].inputs[:2],))
    for model, message in (("net.pt", "not str; .*load_model"), (program, r"its module\(\)")):
        with pytest.raises(InputError, match=f"must be a torch.nn.Module, .*{message}"):
            Guard(model, dissection.dissector)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Dissector or its directory, not int"):
        Guard(net, 5)  # type: ignore[arg-type]
    array = data[1].inputs[:2].numpy()
    guard = Guard(net, dissection.dissector)
    with pytest.raises(InputError, match=r"not numpy\.ndarray"):
        guard.export(tmp_path / "guarded.onnx", array)  # type: ignore[arg-type]


class Unexportable(nn.Module):
    """A network with an operation that ONNX lacks."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, inputs: Tensor) -> Tensor:
        scores: Tensor = self.net(inputs)
        return scores + 0 * torch.linalg.svdvals(scores[:, :, None])


def test_an_operation_that_onnx_lacks_is_not_blamed_on_the_installation(
    data: Data, net: nn.Module, tmp_path: Path
) -> None:
    pytest.importorskip("onnx")
    module = Unexportable(net)
    few = tuple(examples.take(torch.arange(200)) for examples in data)
    guard = Guard(module, dissect(module, *few, layers=["net.third"]).dissector)
    with pytest.raises(InputError, match="cannot be exported") as raised:
        guard.export(tmp_path / "guarded.onnx", few[1].inputs[:2])
    assert "pip install" not in str(raised.value)


class Block(nn.Module):
    """A residual block whose activation is called twice."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(x + self.norm(self.convolution(self.activation(x.clone()))))


def residual(blocks: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        *(Block(4) for _ in range(blocks)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 10),
    ).eval()


def test_a_guard_names_the_type_of_what_is_no_tensor(
    dissection: Dissection, net: nn.Module, data: Data
) -> None:
    guard = Guard(net, dissection.dissector)
    with pytest.raises(InputError, match=r"must be a torch.Tensor, not numpy.ndarray; convert"):
        guard(data[1].inputs[:2].numpy())  # type: ignore[arg-type]


def test_layers_are_blocks_at_even_steps() -> None:
    inputs = torch.zeros(2, 1, 8, 8)
    names = choose_layers(as_classifier(residual(8)), inputs)
    # The stem after its activation, blocks, and the pooled features; never the outputs.
    assert names[0] == "2"
    assert len(names) == 6
    assert names[-1] in ("11", "12")
    few = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 3), nn.Softmax(1))
    assert choose_layers(as_classifier(few), torch.zeros(2, 4)) == ("1",)
    with pytest.raises(InputError, match="no layer before the output"):
        choose_layers(as_classifier(nn.Sequential(nn.Linear(4, 3))), torch.zeros(2, 4))


@pytest.mark.parametrize("shape", [(2, 64, 7, 7), (2, 2000, 3, 3), (2, 5, 300), (2, 5000), (2, 3)])
def test_features_are_bounded(shape: tuple[int, ...]) -> None:
    features = pooled(torch.ones(shape))
    assert features.ndim == 2
    assert features.shape[1] <= MOST_FEATURES
    assert torch.allclose(features, torch.ones(()))


def test_probabilities_leave_no_energy(net: nn.Module, data: Data) -> None:
    found = dissect(nn.Sequential(net, nn.Softmax(dim=1)), *data, layers=["0.third"])
    assert "energy" not in {score.name for score in found.scores}
    assert any("energy is the same for all examples" in note for note in found.notes)
    assert any("ViM: the logits are not a linear function" in note for note in found.notes)


def test_classes_that_the_training_data_lack_are_noted(net: nn.Module, data: Data) -> None:
    train, test = data
    found = dissect(net, train.take((train.labels == 3).nonzero()[:, 0]), test)
    assert found.notes[0] == f"9 of 10 classes, which {train.name} does not contain"
    assert found.notes[1] == "relative Mahalanobis is the same for all examples"


def test_inputs_of_other_data_are_told_from_those_of_the_model(
    net: nn.Module, data: Data, dissection: Dissection
) -> None:
    """Digits upside down: what a network has not seen, although each pixel value is usual."""
    train, test = data
    turned = Examples("turned", test.inputs.flip(2), torch.full_like(test.labels, 99))
    found = dissect(net, train, test, beyond=turned)
    areas = {score.name: score.auc.value or 0.0 for score in found.beyond}
    assert set(areas) == {score.name for score in found.scores}
    assert areas[found.recommended] > 0.7
    assert areas["Mahalanobis"] > areas["max softmax"]
    for score in found.beyond:
        assert 0 <= score.passed <= 1
    assert found.scores == dissection.scores
    # Data that the model knows are not beyond it.
    same = dissect(net, train, test, beyond=test)
    assert all(abs((score.auc.value or 0) - 0.5) < 0.1 for score in same.beyond)
    page = to_html(dissection_report(found))
    assert "inputs beyond the model" in page
    assert f"Recommended on these data: {found.recommended}" in page


def test_wrong_layers_and_data_are_told_of(net: nn.Module, data: Data) -> None:
    train, test = data
    with pytest.raises(InputError, match=r"has no layer 'fourth'; it has first, first\.0"):
        dissect(net, train, test, layers=["fourth"])
    small = Examples("small", test.inputs[..., :4], test.labels)
    with pytest.raises(InputError, match=r"differ in their shapes, \(1, 8, 8\) and \(1, 8, 4\)"):
        dissect(net, train, small)


def test_the_report_shows_all_scores(dissection: Dissection) -> None:
    pytest.importorskip("matplotlib")
    page = to_html(dissection_report(dissection))
    assert all(score.name in page for score in dissection.scores)
    assert "mean snapshot validity" in page


def test_an_ensemble_is_measured_and_is_no_guard(net: nn.Module, data: Data) -> None:
    train, test = data
    other = deepcopy(net)
    with torch.no_grad():
        for weights in other.parameters():
            weights += 0.05 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(0))
    beyond = replace(test, inputs=test.inputs.rot90(1, (2, 3)), labels=test.labels + 100)
    alone = dissect(net, train, test, beyond=beyond)
    found = dissect(net, train, test, beyond=beyond, members=[other])
    assert [score.name for score in found.scores] == [
        *(score.name for score in alone.scores),
        "ensemble",
    ]
    assert [score.name for score in found.beyond][-1] == "ensemble"
    assert found.recommended == alone.recommended
    same = dissect(net, train, test, members=[deepcopy(net)])
    areas = {score.name: score.auc.value for score in same.scores}
    assert areas["ensemble"] == pytest.approx(areas["max softmax"])
