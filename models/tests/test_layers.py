"""Layers of the same network are seen alike, whatever file it is loaded from."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from epochzero.errors import InputError
from epochzero_models import Classifier, Examples, Guard, dissect, load_model
from epochzero_models.classifier import as_classifier
from epochzero_models.dissect.layers import choose_layers
from epochzero_models.evaluate.coverage import neuron_coverage
from epochzero_models.layers import Layer

Data = tuple[Examples, Examples]


def scripted(net: nn.Module, inputs: Tensor, path: Path) -> None:
    torch.jit.save(torch.jit.script(net), path)  # type: ignore[no-untyped-call]


def traced(net: nn.Module, inputs: Tensor, path: Path) -> None:
    torch.jit.save(torch.jit.trace(net, inputs[:2]), path)  # type: ignore[no-untyped-call]


def onnx(net: nn.Module, inputs: Tensor, path: Path, free: bool = True) -> None:
    torch.onnx.export(
        net, (inputs[:2],), str(path), dynamo=False, input_names=["x"],
        dynamic_axes={"x": {0: "n"}} if free else None,
    )  # fmt: skip


def saved(
    kind: str, write: Callable[..., None], net: nn.Module, inputs: Tensor, folder: Path
) -> Classifier:
    path = folder / f"net.{kind}"
    with warnings.catch_warnings(action="ignore"):
        write(net, inputs, path)
    return load_model(str(path))


@pytest.mark.parametrize(("kind", "write"), [("pt", scripted), ("pt", traced), ("onnx", onnx)])
def test_layers_of_a_file_are_those_of_the_network(
    kind: str, write: Callable[..., None], net: nn.Module, data: Data, tmp_path: Path
) -> None:
    few = data[1].take(torch.arange(100))
    loaded = saved(kind, write, net, data[0].inputs, tmp_path)
    own = as_classifier(net)
    assert torch.allclose(loaded.logits(few.inputs), net(few.inputs), atol=1e-5)
    # Each of its modules is one operator.
    (_, theirs), (_, ours) = (
        c.seen(few.inputs, [layer.name for layer in c.layered().known if not layer.has_parts])
        for c in (loaded, own)
    )
    assert len(theirs) == len(ours) == 8
    for one, other in zip(theirs, ours, strict=True):
        assert torch.allclose(one.output, other.output, atol=1e-5)
        assert one.layer.finishes == other.layer.finishes == ("relu" in one.layer.kind.lower())
    assert neuron_coverage(loaded, few) == neuron_coverage(own, few)


@pytest.mark.parametrize(("kind", "write"), [("pt", traced), ("onnx", onnx)])
def test_a_file_is_dissected_and_guarded_as_the_network_is(
    kind: str, write: Callable[..., None], net: nn.Module, data: Data, tmp_path: Path
) -> None:
    loaded = saved(kind, write, net, data[0].inputs, tmp_path)
    assert len(choose_layers(loaded, data[0].inputs)) == 3
    name = "dissector linear"
    ours = dissect(net, *data, layers=["first.1", "second.1", "third.2"], detector=name)
    theirs = dissect(loaded, *data, detector=name)
    assert theirs.chosen.auc.value == pytest.approx(ours.chosen.auc.value, abs=1e-3)
    guard = Guard(loaded, theirs.dissector)
    inputs = data[1].inputs[:50]
    assert torch.allclose(guard(inputs).score, Guard(net, ours.dissector)(inputs).score, atol=1e-3)


def test_operators_are_called_as_the_modules_whose_weights_they_take(
    net: nn.Module, data: Data, tmp_path: Path
) -> None:
    loaded = saved("pt", traced, net, data[0].inputs, tmp_path)
    assert [layer.name for layer in loaded.layered().known] == [
        "first.0", "relu", "second.0", "relu_2", "flatten", "third.1", "relu_3", "head"
    ]  # fmt: skip


class Branches(nn.Module):
    """Gives a mapping, joins tensors, and has a condition."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv1d(2, 3, 3, padding=1)
        self.two = nn.Sequential(nn.Linear(3 * 5 * 2, 4), nn.BatchNorm1d(4), nn.Dropout())

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        seen = self.one(x)
        if bool(x.sum() > 1e9):
            seen = seen + 1
        joined = torch.cat((seen, seen.relu()), dim=1).flatten(1)
        return {"hidden": joined, "logits": self.two(joined)}


def test_scripts_with_conditions_and_mappings_are_looked_into(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, inputs = Branches().eval(), torch.rand(6, 2, 5)
    loaded = saved("pt", scripted, net, inputs, tmp_path)
    logits, calls = loaded.seen(inputs, [layer.name for layer in loaded.layered().known])
    assert torch.allclose(logits, net(inputs)["logits"])
    found = {call.layer.name: call.output for call in calls}
    assert torch.allclose(found["one"], net.one(inputs))  # with its channels where they are
    assert {"cat", "two.0", "two.1", "two.2"} <= set(found)
    assert loaded.logits(inputs).equal(logits)
    assert loaded.module is not None
    assert as_classifier(loaded.module).layered().known == loaded.layered().known


def test_what_comes_after_a_condition_of_onnx_is_seen(tmp_path: Path) -> None:
    onnx = import_module("onnx")
    node, numbers = onnx.helper.make_node, onnx.TensorProto.FLOAT
    value = onnx.helper.make_tensor_value_info
    branch = [
        onnx.helper.make_graph([node(kind, ["x"], [kind])], kind, [], [value(kind, numbers, None)])
        for kind in ("Relu", "Neg")
    ]
    graph = onnx.helper.make_graph(
        [
            node("If", ["yes"], ["chosen"], then_branch=branch[0], else_branch=branch[1]),
            node("Tanh", ["chosen"], ["y"]),
        ],
        "net", [value("x", numbers, ["n", 3])], [value("y", numbers, ["n", 3])],
        [onnx.helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True])],
    )  # fmt: skip
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "net.onnx"
    )
    loaded, inputs = load_model(str(tmp_path / "net.onnx")), torch.randn(4, 3)
    logits, calls = loaded.seen(inputs, ["chosen", "y"])
    assert torch.allclose(logits, inputs.relu().tanh(), atol=1e-6)
    assert [call.layer.kind for call in calls] == ["If", "Tanh"]
    assert torch.equal(calls[0].output, inputs.relu())


def test_onnx_for_batches_of_one_size_takes_any(net: nn.Module, data: Data, tmp_path: Path) -> None:
    loaded = saved("onnx", lambda *all: onnx(*all, free=False), net, data[0].inputs, tmp_path)
    names = [layer.name for layer in loaded.layered().known]
    for count in (5, 0):
        inputs = data[1].inputs[:count]
        logits, calls = loaded.seen(inputs, names)
        assert torch.allclose(logits, net(inputs), atol=1e-5)
        assert len(calls) == len(names)
        assert all(len(call.output) == count for call in calls)


def test_onnx_has_no_gradients_and_without_onnx_no_layers(
    net: nn.Module, data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = saved("onnx", onnx, net, data[0].inputs, tmp_path)
    with pytest.raises(InputError, match="ONNX has no gradients"):
        loaded.differentiable()
    monkeypatch.setattr("epochzero_models.loading.find_spec", lambda name: None)
    without = load_model(str(tmp_path / "net.onnx"))
    assert torch.allclose(without.logits(data[1].inputs[:5]), net(data[1].inputs[:5]), atol=1e-5)
    with pytest.raises(InputError, match=r"layers need onnx: pip install 'epochzero\[onnx\]'"):
        without.layered()


def test_a_program_of_torch_export_has_the_layers_of_its_modules(
    net: nn.Module, data: Data, tmp_path: Path
) -> None:
    inputs = data[1].inputs[:5]
    module = nn.Sequential(net, nn.Dropout()).eval()
    program = torch.export.export(module, (inputs,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    torch.export.save(program, tmp_path / "net.pt2")
    (tmp_path / "load.py").write_text(
        f"import torch\ndef build():\n    return torch.export.load({str(tmp_path / 'net.pt2')!r})\n"
    )
    loaded = load_model(f"{tmp_path / 'load.py'}:build")
    names = {layer.name: layer for layer in as_classifier(module).layered().known}
    assert {layer.name: layer for layer in loaded.layered().known} == names
    for count in (5, 3):
        logits, calls = loaded.seen(inputs[:count], list(names))
        _, expected = as_classifier(module).seen(inputs[:count], list(names))
        assert torch.allclose(logits, net(inputs[:count]), atol=1e-6)
        outputs = {call.layer.name: call.output for call in calls}
        for call in expected:
            assert torch.allclose(outputs[call.layer.name], call.output, atol=1e-6)
    # A container completes after its parts and has the output of the last part.
    assert choose_layers(loaded, inputs) == choose_layers(as_classifier(module), inputs)
    loaded.differentiable().train()
    with pytest.raises(
        InputError, match=r"unpickles programs of torch.export.*return torch.export.load"
    ):
        load_model(str(tmp_path / "net.pt2"))
    with pytest.raises(InputError, match="exported in training mode"):
        as_classifier(torch.export.export(module.train(), (inputs,)).module())


JAX = """
import sys
import keras, numpy, torch
from epochzero_models import load_model
made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, name="wide"), keras.layers.Dense(3, name="out")])
made.save(sys.argv[1])
loaded, inputs = load_model(sys.argv[1]), torch.rand(6, 4)
logits, calls = loaded.seen(inputs, ["wide", "out"])
assert numpy.allclose(logits, made(inputs.numpy()), atol=1e-6)
assert numpy.allclose(loaded.logits(inputs), logits)
assert [(call.layer.name, tuple(call.output.shape)) for call in calls] == [("wide", (6, 5)), ("out", (6, 3))]
assert "jax" in loaded.no_gradients
"""


def test_keras_runs_on_jax_without_gradients(tmp_path: Path) -> None:
    pytest.importorskip("keras")
    pytest.importorskip("jax")
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    subprocess.run([sys.executable, "-c", JAX, tmp_path / "net.keras"], env=environment, check=True)


@pytest.fixture
def keras(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    module = pytest.importorskip("keras")
    if module.config.backend() != "torch":
        pytest.skip("keras was imported with another backend")
    return module


@pytest.mark.filterwarnings("ignore")
def test_layers_of_keras_and_of_models_within_are_seen(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    shared = layers.Dense(4, name="shared")
    inner = keras.Sequential(
        [keras.Input((4,)), layers.Dense(5, name="wide"), layers.ReLU(name="rise")], name="inner"
    )
    given = keras.Input((8, 8, 1))
    seen = layers.Flatten(name="flat")(layers.Conv2D(3, 3, name="image")(given))
    scores = layers.Dense(3, activation="softmax", name="out")(
        inner(shared(shared(layers.Dense(4, name="first")(seen))))
    )
    made = keras.Model(given, scores)
    made.save(tmp_path / "net.keras")
    loaded = load_model(str(tmp_path / "net.keras"))
    inputs = torch.rand(6, 8, 8, 1)
    assert torch.allclose(loaded.logits(inputs).exp(), made(inputs), atol=1e-6)
    logits, calls = loaded.seen(inputs, [layer.name for layer in loaded.layered().known])
    assert torch.equal(logits, loaded.logits(inputs))
    assert [call.layer.name for call in calls] == [
        "image", "flat", "first", "shared", "shared", "inner.wide", "inner.rise", "inner", "out"
    ]  # fmt: skip
    images = calls[0].output
    assert images.shape == (6, 3, 6, 6)
    assert torch.allclose(images.movedim(1, -1), made.get_layer("image")(inputs), atol=1e-6)
    assert as_classifier(made).layered().known == loaded.layered().known
    labels = torch.arange(6) % 3
    assert neuron_coverage(loaded, Examples("e", inputs, labels))[0][1] > 0
    loaded.differentiable()


@pytest.mark.parametrize(
    ("kind", "finishes", "hands_on"),
    [
        *(
            (kind, True, False)
            for kind in ("ReLU", "relu", "relu_", "Relu", "LeakyReLU", "leaky_relu")
        ),
        *((kind, True, False) for kind in ("BatchNorm2d", "batch_norm", "BatchNormalization")),
        *(
            (kind, False, True)
            for kind in ("Flatten", "Dropout2d", "SpatialDropout1D", "FeatureAlphaDropout")
        ),
        *((kind, False, False) for kind in ("Conv2d", "Conv", "Linear", "NormFreeBlock", "addmm")),
    ],
)
def test_kinds_of_all_libraries_are_known(kind: str, finishes: bool, hands_on: bool) -> None:
    layer = Layer("a", kind)
    assert (layer.finishes, layer.hands_on) == (finishes, hands_on)
