"""What a layer, a function or a line of tensors expected, and what to change.

One function a kind of layer; each is given what the layer was called with and says ``expected`` and
``fix``, or nothing. Nothing here raises on odd input: what is not understood is left unsaid.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Callable

import torch
from torch import nn

Advice = dict[str, str]


def advise(module: nn.Module, inputs: Sequence[Any], message: str) -> Advice:
    """What a layer that raised expected.

    Args:
        module: The innermost layer that the exception passed.
        inputs: What it was called with.
        message: The exception's text.
    """
    tensor = next((value for value in inputs if isinstance(value, torch.Tensor)), None)
    if tensor is None:
        return {}
    parameter = next(iter(module.parameters(recurse=False)), None)
    if parameter is not None and parameter.device.type != tensor.device.type:
        return {
            "expected": f"input and weights on one device, not {tensor.device} and {parameter.device}",
            "fix": _moved(tensor, parameter),
        }
    for kinds, advice in _LAYERS:
        if isinstance(module, kinds):
            found = advice(module, tensor, inputs)
            if found:
                return found
    wrong_type = (
        parameter is not None
        and not isinstance(module, (nn.Embedding, nn.EmbeddingBag))
        and parameter.dtype != tensor.dtype
    )
    if wrong_type and parameter is not None:
        return _of_type(tensor, parameter)
    return {}


def advise_call(name: str, values: Mapping[str, Any], message: str) -> Advice:
    """What a function of `torch.nn.functional` that raised expected, by its arguments."""
    advice = _FUNCTIONS.get(name)
    given, target = values.get("input"), values.get("target")
    if (
        advice is None
        or not isinstance(given, torch.Tensor)
        or not isinstance(target, torch.Tensor)
    ):
        return {}
    if given.device.type != target.device.type:
        return {
            "expected": f"input and target on one device, not {given.device} and {target.device}",
            "fix": f'target.to("{given.device.type}")',
        }
    return advice(given, target)


def advise_line(message: str, tensors: Sequence[Mapping[str, Any]]) -> Advice:
    """What a line outside of any layer expected, by the exception's text and the tensors it names."""
    for pattern, advice in _TEXTS:
        match = pattern.search(message)
        if match:
            return advice(match, tensors)
    return {}


def _moved(tensor: torch.Tensor, parameter: torch.Tensor) -> str:
    if parameter.device.type == "cpu":
        return f'model.to("{tensor.device.type}")'
    return f'input.to("{parameter.device.type}")'


def _of_type(tensor: torch.Tensor, parameter: torch.Tensor) -> Advice:
    wanted = str(parameter.dtype)
    return {
        "expected": f"input of type {wanted}, as the weights; given {tensor.dtype}",
        "fix": f"input.to({wanted})",
    }


# --- layers


def _linear(module: Any, tensor: torch.Tensor, inputs: Sequence[Any]) -> Advice:
    wanted, given = module.in_features, tensor.shape[-1] if tensor.dim() else 0
    if given == wanted:
        return {}
    expected = f"a last dimension of {wanted}; given {given}"
    if tensor.dim() > 2 and math.prod(tensor.shape[1:]) == wanted:
        return {"expected": expected, "fix": "flatten the input before: torch.flatten(x, 1)"}
    if tensor.dim() > 1 and tensor.shape[-2] == wanted:
        return {"expected": expected, "fix": "swap the last two dimensions: x.transpose(-1, -2)"}
    if tensor.dim() == 4:
        number = math.prod(tensor.shape[1:])
        return {
            "expected": expected,
            "fix": f"torch.flatten(x, 1) before, and in_features={number}",
        }
    return {"expected": expected, "fix": f"in_features={given}"}


def _convolution(module: Any, tensor: torch.Tensor, inputs: Sequence[Any]) -> Advice:
    places = len(module.kernel_size)
    wanted = module.in_channels
    if tensor.dim() not in (places + 1, places + 2):
        expected = (
            f"{places + 2} dimensions (batch, channels, {places} of space); given {tensor.dim()}"
        )
        if tensor.dim() == places and wanted == 1:
            return {
                "expected": expected,
                "fix": "add the dimensions of batch and channel: x[None, None]",
            }
        if tensor.dim() > places + 2:
            return {"expected": expected, "fix": "merge the leading dimensions: x.flatten(0, 1)"}
        return {"expected": expected, "fix": "add the missing dimension: x.unsqueeze(1)"}
    batched = tensor.dim() == places + 2
    given = tensor.shape[1 if batched else 0]
    if given == wanted:
        kernel = module.kernel_size
        if any(size == 0 for size in tensor.shape):
            return {"expected": "an input with elements", "fix": "less pooling or a larger input"}
        if tensor.dtype == module.weight.dtype:
            return {
                "expected": f"an input of at least the kernel's size {kernel}",
                "fix": "a larger input, padding, or fewer strides before",
            }
        return {}
    expected = f"{wanted} channels in dimension {1 if batched else 0}; given {given}"
    if tensor.shape[-1] == wanted:
        order = {1: "0, 2, 1", 2: "0, 3, 1, 2", 3: "0, 4, 1, 2, 3"}[places]
        if not batched:
            order = {1: "1, 0", 2: "2, 0, 1", 3: "3, 0, 1, 2"}[places]
        return {"expected": expected, "fix": f"channels come last: x.permute({order})"}
    if given == 1 and wanted == 3:
        return {
            "expected": expected,
            "fix": "in_channels=1, or repeat the gray channel: x.expand(-1, 3, -1, -1)",
        }
    return {"expected": expected, "fix": f"in_channels={given}"}


def _batch_norm(module: Any, tensor: torch.Tensor, inputs: Sequence[Any]) -> Advice:
    wanted = module.num_features
    ranks = {"1d": (2, 3), "2d": (4,), "3d": (5,)}.get(type(module).__name__[-2:], ())
    if ranks and tensor.dim() not in ranks:
        names = " or ".join(str(rank) for rank in ranks)
        right = {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d", 5: "BatchNorm3d"}
        other = right.get(tensor.dim(), "another layer")
        return {"expected": f"{names} dimensions; given {tensor.dim()}", "fix": f"nn.{other}"}
    given = tensor.shape[1] if tensor.dim() > 1 else 0
    if given != wanted:
        expected = f"{wanted} features in dimension 1; given {given}"
        if tensor.dim() == 3 and tensor.shape[2] == wanted:
            return {"expected": expected, "fix": "swap the last two dimensions: x.transpose(1, 2)"}
        return {"expected": expected, "fix": f"num_features={given}"}
    if module.training and tensor.numel() // max(given, 1) <= 1:
        return {
            "expected": "more than one value per channel in training",
            "fix": "drop_last=True in the DataLoader, or a larger batch",
        }
    return {}


def _layer_norm(module: Any, tensor: torch.Tensor, inputs: Sequence[Any]) -> Advice:
    wanted = tuple(module.normalized_shape)
    given = tuple(tensor.shape[-len(wanted) :])
    if given == wanted:
        return {}
    expected = f"last dimensions {list(wanted)}; given {list(given)}"
    if tensor.dim() == 4 and len(wanted) == 1 and tensor.shape[1] == wanted[0]:
        return {
            "expected": expected,
            "fix": "channels last: x.permute(0, 2, 3, 1) before, and back after",
        }
    if len(wanted) == 1 and tensor.dim() > 1 and tensor.shape[-2] == wanted[0]:
        return {"expected": expected, "fix": "swap the last two dimensions: x.transpose(-1, -2)"}
    shape = given[0] if len(given) == 1 else list(given)
    return {"expected": expected, "fix": f"normalized_shape={shape}"}


def _group_norm(module: Any, tensor: torch.Tensor, inputs: Sequence[Any]) -> Advice:
    given = tensor.shape[1] if tensor.dim() > 1 else 0
    if given == module.num_channels:
        return {}
    expected = f"{module.num_channels} channels in dimension 1; given {given}"
    return {"expected": expected, "fix": f"num_channels={given}"}


def _embedding(module: Any, tensor: torch.Tensor, inputs: Sequence[Any]) -> Advice:
    if tensor.dtype not in (torch.int64, torch.int32):
        return {"expected": f"whole numbers; given {tensor.dtype}", "fix": "input.long()"}
    return {
        "expected": f"indices from 0 to {module.num_embeddings - 1}",
        "fix": "num_embeddings that covers the largest index (the tokenizer's vocabulary size)",
    }


def _recurrent(module: Any, tensor: torch.Tensor, inputs: Sequence[Any]) -> Advice:
    if tensor.dim() not in (2, 3):
        return {
            "expected": f"2 or 3 dimensions; given {tensor.dim()}",
            "fix": "x.flatten(0, -3) or x.unsqueeze(1)",
        }
    given, wanted = tensor.shape[-1], module.input_size
    if given != wanted:
        expected = f"a last dimension of {wanted}; given {given}"
        if wanted in tensor.shape[:-1]:
            return {"expected": expected, "fix": "put the features last: x.transpose(-1, -2)"}
        return {"expected": expected, "fix": f"input_size={given}"}
    state = inputs[1] if len(inputs) > 1 else None
    state = state[0] if isinstance(state, (tuple, list)) and state else state
    if not isinstance(state, torch.Tensor):
        return {}
    layers = module.num_layers * (2 if module.bidirectional else 1)
    batch = tensor.shape[0 if module.batch_first else 1] if tensor.dim() == 3 else None
    shape = [layers, module.hidden_size] if batch is None else [layers, batch, module.hidden_size]
    if list(state.shape) == shape:
        return {}
    expected = f"a state of shape {shape}; given {list(state.shape)}"
    other = tensor.shape[1 if module.batch_first else 0] if tensor.dim() == 3 else None
    if batch != other and len(state.shape) == 3 and state.shape[1] == other:
        turned = not module.batch_first
        return {"expected": expected, "fix": f"batch_first={turned}, as the input is laid out"}
    return {"expected": expected, "fix": f"make the state with {shape}"}


def _attention(module: Any, tensor: torch.Tensor, inputs: Sequence[Any]) -> Advice:
    given, wanted = tensor.shape[-1], module.embed_dim
    if given == wanted:
        return {}
    expected = f"a last dimension of {wanted}; given {given}"
    if wanted in tensor.shape[:-1]:
        return {"expected": expected, "fix": "put the features last: x.transpose(-1, -2)"}
    return {"expected": expected, "fix": f"embed_dim={given}"}


def _bilinear(module: Any, tensor: torch.Tensor, inputs: Sequence[Any]) -> Advice:
    if tensor.shape[-1] == module.in1_features:
        return {
            "expected": f"a second input of {module.in2_features}",
            "fix": f"in2_features={inputs[1].shape[-1]}",
        }
    return {
        "expected": f"a first input of {module.in1_features}",
        "fix": f"in1_features={tensor.shape[-1]}",
    }


_LAYERS: tuple[tuple[Any, Callable[..., Advice]], ...] = (
    (nn.Linear, _linear),
    (nn.Bilinear, _bilinear),
    (nn.modules.conv._ConvNd, _convolution),
    ((nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm), _batch_norm),
    (nn.LayerNorm, _layer_norm),
    (nn.GroupNorm, _group_norm),
    ((nn.Embedding, nn.EmbeddingBag), _embedding),
    (nn.modules.rnn.RNNBase, _recurrent),
    (nn.MultiheadAttention, _attention),
)


# --- losses


def _cross_entropy(given: torch.Tensor, target: torch.Tensor) -> Advice:
    classes = given.shape[1] if given.dim() > 1 else given.shape[0]
    if target.is_floating_point() and target.shape != given.shape:
        return {"expected": "classes as whole numbers", "fix": "target.long()"}
    if not target.is_floating_point() and target.dtype not in (torch.int64, torch.uint8):
        return {"expected": f"classes as int64; given {target.dtype}", "fix": "target.long()"}
    if not target.is_floating_point() and target.shape == given.shape:
        return {
            "expected": "one class a row, or probabilities",
            "fix": "target.argmax(1), or target.float()",
        }
    wanted = [given.shape[0], *given.shape[2:]] if given.dim() > 1 else []
    expected = f"a target of shape {wanted} for an input of {list(given.shape)}; given {list(target.shape)}"
    if target.dim() == len(wanted) + 1 and target.shape[-1] == 1:
        return {"expected": expected, "fix": "target.squeeze(-1)"}
    if target.dim() == len(wanted) + 1 and target.dim() > 1 and target.shape[1] == 1:
        return {"expected": expected, "fix": "target.squeeze(1)"}
    if given.dim() == 3 and list(target.shape) == list(given.shape[:2]):
        return {
            "expected": expected,
            "fix": "classes second: input.transpose(1, 2), or flatten both: input.flatten(0, 1), target.flatten()",
        }
    if list(target.shape) == wanted:
        return {
            "expected": f"classes from 0 to {classes - 1}",
            "fix": "as many outputs of the last layer as there are classes (num_classes), counted from 0",
        }
    return {"expected": expected, "fix": "as many targets as rows of the input"}


def _same_shape(given: torch.Tensor, target: torch.Tensor) -> Advice:
    if given.shape == target.shape:
        if not target.is_floating_point():
            return {
                "expected": f"a target of {given.dtype}; given {target.dtype}",
                "fix": "target.float()",
            }
        if target.dtype != given.dtype:
            return {"expected": f"a target of {given.dtype}", "fix": f"target.to({given.dtype})"}
        return {}
    expected = f"a target of shape {list(given.shape)}; given {list(target.shape)}"
    if given.dim() == target.dim() + 1 and given.shape[-1] == 1:
        return {"expected": expected, "fix": "target.unsqueeze(-1), or input.squeeze(-1)"}
    if target.dim() + 1 == given.dim() and given.shape[0] == target.shape[0]:
        return {"expected": expected, "fix": f"F.one_hot(target, {given.shape[1]}).float()"}
    return {"expected": expected, "fix": "input and target of one shape"}


_FUNCTIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], Advice]] = {
    "cross_entropy": _cross_entropy,
    "nll_loss": _cross_entropy,
    "binary_cross_entropy": _same_shape,
    "binary_cross_entropy_with_logits": _same_shape,
    "mse_loss": _same_shape,
    "l1_loss": _same_shape,
    "smooth_l1_loss": _same_shape,
    "huber_loss": _same_shape,
}


# --- lines


def _devices(match: re.Match[str], tensors: Sequence[Mapping[str, Any]]) -> Advice:
    on_cpu = [tensor["name"] for tensor in tensors if tensor["device"] == "cpu"]
    others = sorted({tensor["device"] for tensor in tensors} - {"cpu"})
    fix = f'{on_cpu[0]}.to("{others[0]}")' if on_cpu and others else "move both to one device"
    return {"expected": "all tensors on one device", "fix": fix}


def _product(match: re.Match[str], tensors: Sequence[Mapping[str, Any]]) -> Advice:
    rows, inner, other, columns = (int(number) for number in match.groups())
    expected = f"equal inner dimensions; given {inner} and {other}"
    if inner == columns:
        return {"expected": expected, "fix": "transpose the second: b.transpose(-1, -2)"}
    if rows == other:
        return {"expected": expected, "fix": "transpose the first: a.transpose(-1, -2)"}
    return {"expected": expected, "fix": f"{inner} and {other} must be one number"}


def _broadcast(match: re.Match[str], tensors: Sequence[Mapping[str, Any]]) -> Advice:
    first, second, dimension = match.groups()
    expected = f"equal sizes, or 1, in dimension {dimension}; given {first} and {second}"
    fix = f"bring dimension {dimension} to one size"
    if len(tensors) > 1 and len(tensors[0]["shape"]) != len(tensors[1]["shape"]):
        short = min(tensors[:2], key=lambda tensor: len(tensor["shape"]))
        fix = f"align the dimensions: {short['name']}.unsqueeze(...)"
    return {"expected": expected, "fix": fix}


def _state(match: re.Match[str], tensors: Sequence[Mapping[str, Any]]) -> Advice:
    text = match.string
    sized = re.search(
        r"size mismatch for (\S+): copying a param with shape torch\.Size\((\[.*?\])\) from "
        r"checkpoint, the shape in current model is torch\.Size\((\[.*?\])\)",
        text,
    )
    missing, unexpected = _keys(text, "Missing"), _keys(text, "Unexpected")
    if missing and unexpected:
        return _renamed(missing, unexpected)
    if sized:
        name, saved, there = sized.groups()
        return {
            "expected": f"{name} of shape {there}; the checkpoint has {saved}",
            "fix": "build the model as the checkpoint's was, or leave this layer out of what is loaded",
        }
    if missing:
        return {
            "expected": f"key {missing[0]} in the checkpoint",
            "fix": "strict=False, if it may stay as built",
        }
    if unexpected:
        return {"expected": f"no key {unexpected[0]}", "fix": "strict=False, if it may be left out"}
    return {}


def _keys(text: str, kind: str) -> list[str]:
    match = re.search(kind + r" key\(s\) in state_dict: (.*?)\.\s*(?:\n|$)", text)
    return re.findall(r'"([^"]+)"', match.group(1)) if match else []


def _renamed(missing: list[str], unexpected: list[str]) -> Advice:
    for prefix in ("module.", "_orig_mod.", "model."):
        expected = f"keys such as {missing[0]}; the checkpoint has {unexpected[0]}"
        if prefix + missing[0] in unexpected:
            return {
                "expected": expected,
                "fix": f'{{k.removeprefix("{prefix}"): v for k, v in state.items()}}',
            }
        if missing[0].removeprefix(prefix) in unexpected and missing[0].startswith(prefix):
            return {"expected": expected, "fix": f'{{"{prefix}" + k: v for k, v in state.items()}}'}
    near = difflib.get_close_matches(missing[0], unexpected, 1, cutoff=0.5)
    if near:
        return {"expected": f"key {missing[0]}", "fix": f"rename {near[0]} to {missing[0]}"}
    return {
        "expected": f"key {missing[0]}; the checkpoint has {unexpected[0]}",
        "fix": "the checkpoint of this model, or its part: state['model'], state['state_dict']",
    }


def _view(match: re.Match[str], tensors: Sequence[Mapping[str, Any]]) -> Advice:
    sizes = [int(size) for size in re.findall(r"-?\d+", match.group(1))]
    number = int(match.group(2))
    known = math.prod(size for size in sizes if size > 0)
    expected = f"{known} elements (or a multiple of it); there are {number}"
    last = sizes[-1] if sizes else 0
    if sizes and sizes[0] == -1 and len(sizes) == 2 and tensors:
        rest = math.prod(tensors[0]["shape"][1:])
        return {"expected": expected, "fix": f"view(-1, {rest}) instead of {last}"}
    return {"expected": expected, "fix": "compute the sizes from x.shape"}


def _concatenate(match: re.Match[str], tensors: Sequence[Mapping[str, Any]]) -> Advice:
    expected, given = match.group(1), match.group(2)
    return {
        "expected": f"equal sizes but in the dimension that is joined; given {expected} and {given}",
        "fix": "crop, pad or interpolate one of them, or join along another dimension",
    }


def _types(match: re.Match[str], tensors: Sequence[Mapping[str, Any]]) -> Advice:
    first, second = match.groups()
    return {
        "expected": f"one type; given {first} and {second}",
        "fix": "bring both to one: b.to(a.dtype)",
    }


def _lay_out(match: re.Match[str], tensors: Sequence[Mapping[str, Any]]) -> Advice:
    return {
        "expected": "a layout that a view can share",
        "fix": "reshape(...), or contiguous() before view",
    }


_TEXTS: tuple[tuple[re.Pattern[str], Callable[..., Advice]], ...] = (
    (re.compile(r"Expected all tensors to be on the same device"), _devices),
    (re.compile(r"Error\(s\) in loading state_dict"), _state),
    (re.compile(r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)"), _product),
    (re.compile(r"same reduction dim, but got \[(\d+), (\d+)\] X \[(\d+), (\d+)\]"), _product),
    (
        re.compile(
            r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at "
            r"non-singleton dimension (\d+)"
        ),
        _broadcast,
    ),
    (re.compile(r"shape '\[(.*?)\]' is invalid for input of size (\d+)"), _view),
    (re.compile(r"Expected size (\d+) but got size (\d+)"), _concatenate),
    (re.compile(r"must (?:have the )?same dtype,? but got (\w+) and (\w+)"), _types),
    (re.compile(r"expected scalar type (\w+) but found (\w+)"), _types),
    (re.compile(r"view size is not compatible|Cannot view a tensor with"), _lay_out),
)
