"""What a user names as a model becomes a classifier, or is refused with what to do."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from epochzero.errors import InputError
from epochzero_models import Examples, load_model
from epochzero_models.classifier import as_classifier, logits_of

Data = tuple[Examples, Examples]


def test_code_with_weights_gives_what_the_network_gives(
    net: nn.Module, net_file: Path, weights: Path, data: Data
) -> None:
    loaded = load_model(f"{net_file}:build", weights)
    inputs = data[1].inputs[:5]
    assert torch.equal(loaded.logits(inputs), net(inputs))
    assert loaded.module is not None
    assert not loaded.module.training


def test_weights_drawn_by_the_code_follow_the_seed(net_file: Path, data: Data) -> None:
    inputs = data[1].inputs[:5]
    first, again, other = (
        load_model(f"{net_file}:build", seed=seed, untrained=True).logits(inputs)
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def build(): return nn.Linear(2, 2)", "all parameters"),
        (
            "def build():\n    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))\n"
            "    net[0].load_state_dict({'weight': torch.ones(3, 2), 'bias': torch.zeros(3)})\n    return net",
            "2 of 4 parameters",
        ),
    ],
)
def test_random_weights_are_refused(tmp_path: Path, code: str, found: str) -> None:
    file = tmp_path / f"net_{len(code)}.py"
    file.write_text(f"import torch\nfrom torch import nn\n{code}\n")
    with pytest.raises(InputError, match=f"{found} are randomly initialized"):
        load_model(f"{file}:build")
    assert load_model(f"{file}:build", untrained=True).module is not None


def test_weights_that_the_code_loads_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "loaded_net.py"
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "own.pt")
    file.write_text(
        "import torch\nfrom pathlib import Path\nfrom torch import nn\n\ndef build():\n    net = nn.Linear(2, 2)\n"
        "    net.load_state_dict(torch.load(Path(__file__).with_name('own.pt')))\n    return net\n"
    )
    assert load_model(f"{file}:build").module is not None


def test_weights_within_a_checkpoint_are_found(
    net: nn.Module, net_file: Path, tmp_path: Path, data: Data
) -> None:
    torch.save({"epoch": 3, "model_state_dict": net.state_dict()}, tmp_path / "all.pt")
    loaded = load_model(f"{net_file}:build", tmp_path / "all.pt")
    assert torch.equal(loaded.logits(data[1].inputs[:5]), net(data[1].inputs[:5]))


class Trap:
    """Unpickling it would leave a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.trace,)


def test_a_pickled_model_is_refused_and_not_run(
    net: nn.Module, net_file: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.pt"
    torch.save({"model": net, "trap": Trap(tmp_path / "ran")}, whole)
    with pytest.raises(InputError, match=r"pickled .*state_dict\(\)"):
        load_model(f"{net_file}:build", whole)
    with pytest.raises(InputError, match=r"pickled .*state_dict\(\)"):
        load_model(str(whole))
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap(tmp_path / "ran")))
    with pytest.raises(InputError, match="pickled"):
        load_model(str(tmp_path / "plain.pt"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nothing.py:build", "does not exist"),
        ("net.py:absent", "has no absent"),
        ("net.py:broken", r"fails with KeyError: 'weights' \(net.py, line \d+\)"),
        ("net.py:number", "returns a int, not a torch.nn.Module"),
        ("net.pt", "weights without a model; name the code"),
        ("nothing.pt", "no such file"),
        ("net.py", "is not a supported model format"),
    ],
)
def test_what_is_no_model_is_told_of(name: str, told: str, net_file: Path, weights: Path) -> None:
    with pytest.raises(InputError, match=told):
        load_model(str(net_file.parent / name))


def test_weights_of_another_model_are_told_of(net_file: Path, tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "other.pt")
    with pytest.raises(InputError, match=r"does not contain the weights of .*Missing key"):
        load_model(f"{net_file}:build", tmp_path / "other.pt")
    with pytest.raises(InputError, match="no such file of weights"):
        load_model(f"{net_file}:build", tmp_path / "none.pt")


@given(content=st.binary(max_size=200), suffix=st.sampled_from([".pt", ".pth", ".onnx"]))
def test_any_file_is_loaded_or_refused(
    content: bytes, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError):
        load_model(str(path))


class Gives(nn.Module):
    """A model with any output."""

    def __init__(self, output: object) -> None:
        super().__init__()
        self.output = output

    def forward(self, x: torch.Tensor) -> object:
        return self.output


LOGITS = torch.tensor([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])
PAIR = Examples("pair", torch.zeros(2, 4), torch.tensor([1, 2]))


@pytest.mark.parametrize(
    "output", [LOGITS, (LOGITS, "more"), {"logits": LOGITS}, LOGITS.softmax(dim=1)]
)
def test_logits_are_found_in_what_a_model_gives(output: object) -> None:
    found = logits_of(as_classifier(Gives(output)), PAIR)
    assert torch.allclose(found.softmax(dim=1), LOGITS.softmax(dim=1))


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ({"scores": LOGITS}, "a mapping with 'scores'"),
        (None, "returns a NoneType"),
        ((), "a tuple of nothing"),
        (LOGITS[:, 0], r"shape \(2,\) for 2 examples.* becomes two by torch.stack\("),
        (LOGITS[:, :1], r"A single logit z becomes two by torch.cat\("),
        (LOGITS[..., None], r"shape \(2, 3, 1\) for 2 examples; [^.]* classes$"),
        (LOGITS[:1], r"shape \(1, 3\) for 2 examples"),
        (LOGITS * float("nan"), "NaN or infinity for 2 of 2 examples"),
        (
            LOGITS[:, :2],
            "example 2 has the label 2, but Gives has 2 outputs: labels must be 0 to 1",
        ),
    ],
)
def test_odd_outputs_are_told_of(output: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        logits_of(as_classifier(Gives(output)), PAIR)


def test_a_model_that_fails_tells_the_shape(net: nn.Module) -> None:
    with pytest.raises(InputError, match=r"Net: fails on inputs of shape \(2, 4\)"):
        logits_of(as_classifier(net), PAIR)


def test_large_inputs_come_in_small_batches() -> None:
    sizes: list[int] = []

    class Sizes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            sizes.append(len(x))
            return torch.zeros(len(x), 2)

    wide = Examples("wide", torch.zeros(5, 6 << 20), torch.zeros(5).long())
    logits_of(as_classifier(Sizes()), wide)
    assert sizes == [2, 2, 1]
