"""What a user names as a model -> a `Classifier`. Nothing is unpickled but plain weights.

net.py:build              a function or class of the user's that gives a torch module
net.py:build + net.pt     the same with weights: a state dict (.pt, .pth, .safetensors)
net.pt                    TorchScript
net.pt2                   refused: torch unpickles programs of torch.export
net.onnx                  ONNX, by onnxruntime: no gradients; its layers by onnx
net.keras                 Keras 3: on its torch backend, or on another one without gradients
"""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from epochzero.errors import InputError
from epochzero_models.classifier import Classifier, as_classifier
from epochzero_models.layers.keras import KerasLayers, from_backend
from epochzero_models.layers.onnx import OnnxLayers, run_onnx
from epochzero_models.seeds import seeded
from epochzero_models.user_code import is_own_code, made_by

_OWN_CODE = "name the code that builds it: file.py:function, with --weights for its state dict"
_PICKLED = (
    "holds pickled Python objects, which could run any code when they are loaded. Keep its weights "
    "alone, torch.save(model.state_dict(), 'weights.pt'), and " + _OWN_CODE
)
# Where training scripts put the weights within a checkpoint.
_NESTED = ("state_dict", "model_state_dict", "model")


def load_model(
    source: str,
    weights: str | Path | None = None,
    *,
    device: str = "cpu",
    seed: int = 0,
    untrained: bool = False,
) -> Classifier:
    """Load the model that a user names, in evaluation mode.

    Args:
        source: ``file.py:function_or_class``, or a file of TorchScript, ONNX or Keras 3.
        weights: state dict for a model built by code (.pt, .pth or .safetensors).
        device: torch device, such as ``cuda``.
        seed: of weights that the code initializes at random.
        untrained: accept a model with randomly initialized weights.

    Raises:
        InputError: it is not a model, cannot be loaded safely, requires a package that is not installed, or has
            randomly initialized weights.
    """
    place = _device(device)
    if is_own_code(source):
        return _from_code(source, weights, place, seed, untrained)
    path = Path(source)
    if not path.is_file():
        raise InputError(f"{source}: no such file; a model is a file, or {_OWN_CODE}")
    if weights is not None:
        raise InputError(f"{source} has its own weights; --weights is for file.py:function")
    loader = _LOADERS.get(path.suffix.lower())
    if loader is None:
        raise InputError(
            f"{source} is not a supported model format ({', '.join(_LOADERS)}); {_OWN_CODE}"
        )
    return loader(path, place)


def _device(name: str) -> torch.device:
    try:
        torch.empty(1, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"{name} is not a device that torch supports on this machine") from error


# The user's code


def _from_code(
    source: str, weights: str | Path | None, device: torch.device, seed: int, untrained: bool
) -> Classifier:
    made = _built(source, seed)
    if weights is not None:
        _set_weights(made, source, Path(weights))
    elif not untrained:
        _refuse_random(made, source, seed)
    made.requires_grad_(False)
    return as_classifier(made.to(device), source)


def _built(source: str, seed: int) -> nn.Module:
    with seeded(seed):
        made = made_by(source)
    if isinstance(made, torch.export.ExportedProgram):
        made = made.module()
    if not isinstance(made, nn.Module):
        raise InputError(f"{source}: returns a {type(made).__name__}, not a torch.nn.Module")
    return made


def _refuse_random(module: nn.Module, source: str, seed: int) -> None:
    """Reject randomly initialized parameters: those that differ when the model is built with another seed.

    Code may load its own weights, as `from_pretrained` does, and still initialize a new head at random.
    """
    with redirect_stdout(StringIO()):  # the code has already printed this
        other = dict(_built(source, seed + 1).named_parameters())
    own = dict(module.named_parameters())
    random = [
        name for name, param in own.items() if name in other and not _equal(param, other[name])
    ]
    if random:
        which = "all" if len(random) == len(own) else f"{len(random)} of {len(own)}"
        raise InputError(
            f"{source}: {which} parameters are randomly initialized, for example {random[0]}. Pass trained weights "
            "with --weights, or --untrained to measure the model as it is (in Python: weights=, untrained=True)"
        )


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.detach().cpu(), other.detach().cpu())


def _set_weights(module: nn.Module, source: str, path: Path) -> None:
    try:
        module.load_state_dict(_state_dict(path))
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:400]
        raise InputError(f"{path} does not contain the weights of {source}: {reason}") from error


def _state_dict(path: Path) -> Mapping[str, Tensor]:
    if not path.is_file():
        raise InputError(f"{path}: no such file of weights")
    if path.suffix.lower() == ".safetensors":
        safe = _needed("safetensors.torch", "models", path)
        try:
            tensors: Mapping[str, Tensor] = safe.load_file(path)
        except Exception as error:  # its own kind of error, which is not exported for catching
            raise InputError(f"{path} is not a safetensors file: {error}") from error
        return tensors
    found = _unpickled(path)
    for key in _NESTED:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
    if not _is_state_dict(found):
        raise InputError(f"{path} contains a {type(found).__name__}, not a state dict of tensors")
    return found  # type: ignore[no-any-return]


def _is_state_dict(found: Any) -> bool:
    return (
        isinstance(found, Mapping)
        and bool(found)
        and any(isinstance(value, Tensor) for value in found.values())
    )


def _unpickled(path: Path) -> Any:
    """What torch reads with ``weights_only``, which builds tensors and plain containers only."""
    try:
        # Warnings are of pickle protocols that torch does not write itself.
        with warnings.catch_warnings(action="ignore"):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "GLOBAL" in str(error) or _is_plain_pickle(path):
            raise InputError(f"{path}: {_PICKLED}") from error
        raise InputError(f"{path} is not a file saved by torch, or it is damaged") from error
    except Exception as error:  # torch raises almost anything for files that are not its own
        raise InputError(f"{path} is not a file saved by torch, or it is damaged") from error


def _is_plain_pickle(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1) == pickle.PROTO


# Files of whole models


def _from_torch_file(path: Path, device: torch.device) -> Classifier:
    if not _is_torchscript(path):
        _unpickled(path)
        raise InputError(f"{path} contains weights without a model; {_OWN_CODE} {path}")
    try:
        with warnings.catch_warnings(action="ignore"):  # that TorchScript is no longer developed
            module = torch.jit.load(path, map_location=device)  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: the TorchScript model cannot be loaded: {reason}") from error
    # A frozen module has no weights that show its device.
    return replace(as_classifier(module, str(path)), device=device)


def _is_torchscript(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/code/" in name for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


def _from_onnx(path: Path, device: torch.device) -> Classifier:
    runtime = _needed("onnxruntime", "onnx", path)

    def opened(model: str | bytes) -> Any:
        try:
            return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
        except Exception as error:  # its own kinds of error, which have no common base
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"{path}: the ONNX model cannot be loaded: {reason}") from error

    session = opened(str(path))
    if len(session.get_inputs()) != 1:
        names = ", ".join(argument.name for argument in session.get_inputs())
        raise InputError(f"{path} has several inputs ({names}); one is expected")
    output = session.get_outputs()[0].name
    layers = OnnxLayers(path, output, opened) if find_spec("onnx") else None
    return Classifier(
        str(path), lambda inputs: run_onnx(session, (output,), inputs)[0], torch.device("cpu"),
        no_gradients=f"ONNX has no gradients; {_OWN_CODE}",
        no_layers="" if layers else f"its layers need onnx: {_install('onnx')}",
        layers=layers,
    )  # fmt: skip


def _from_keras(path: Path, device: torch.device) -> Classifier:
    keras = _needed("keras", "keras", path)
    try:
        module = keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # Keras raises almost anything for files that are not its own
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: the Keras model cannot be loaded: {reason}") from error
    if (backend := keras.config.backend()) == "torch":
        return as_classifier(module.to(device), str(path))
    return Classifier(
        str(path),
        lambda inputs: from_backend(module(inputs.numpy(), training=False)),
        torch.device("cpu"),
        no_gradients=f"Keras runs on {backend}; set KERAS_BACKEND=torch for gradients",
        layers=KerasLayers(module, from_backend),
    )


def _from_program(path: Path, _: torch.device) -> Classifier:
    raise InputError(
        f"{path}: torch unpickles programs of torch.export, which could run any code. If you trust it, name code that "
        f"loads it: file.py:function with `return torch.export.load({str(path)!r})`"
    )


def _needed(module: str, extra: str, path: Path) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise InputError(f"{path} requires {package}: {_install(extra)}") from error


def _install(extra: str) -> str:
    return f"pip install 'epochzero[{extra}]'"


_LOADERS: Mapping[str, Callable[[Path, torch.device], Classifier]] = {
    ".pt": _from_torch_file,
    ".pth": _from_torch_file,
    ".onnx": _from_onnx,
    ".keras": _from_keras,
    ".pt2": _from_program,
}
