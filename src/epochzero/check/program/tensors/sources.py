"""Where tensors of known sizes come from: functions that make them, data sets, data loaders.

Source: PyTorch documentation, torch, Creation Ops, and torch.utils.data; torchvision documentation,
Datasets.
"""

from __future__ import annotations

from collections.abc import Mapping

from epochzero.check.program.heap import Box, LibraryResult, V, held
from epochzero.check.program.tensors.functions import TensorFunction
from epochzero.check.program.tensors.parameters import Given, numbers
from epochzero.check.program.tensors.values import (
    Dim,
    NotKnown,
    Shape,
    Tensor,
    as_dim,
    fresh,
)
from epochzero.check.program.values import Anything, Constant


def _made(given: Given) -> V:
    return Tensor(shape=tuple(given.rest(0, "size")))


def _made_of(given: Given) -> V:
    """The size is one argument: ``torch.full((2, 3), 0.5)``, ``np.zeros((2, 3))``."""
    size = given.value("size")
    sizes = numbers(size)
    if sizes is None:
        one = as_dim(size)
        if one is None:
            raise NotKnown
        sizes = [one]
    return Tensor(shape=tuple(sizes))


def _drawn(given: Given) -> V:
    """``torch.randint(high, size)`` or ``torch.randint(low, high, size)``."""
    sizes = next((one for one in map(numbers, given.positional) if one is not None), None)
    sizes = sizes or numbers(given.value("size"))
    if sizes is None:
        raise NotKnown
    return Tensor(shape=tuple(sizes))


def _counted(given: Given) -> V:
    if len(given.positional) == 1:
        return Tensor(shape=(given.size("start"),))
    return Tensor(shape=(fresh(),))


def _written(given: Given) -> V:
    """A tensor of numbers in lists of lists."""
    value = given.value("data")
    known = held(value)
    return known if isinstance(known, Tensor) else Tensor(shape=_shape_of(value))


def _shape_of(value: V | None) -> Shape:
    if isinstance(value, Constant):
        return ()
    if not isinstance(value, Box) or value.kind not in ("list", "tuple"):
        raise NotKnown
    content = value.content
    if not content.complete or not content.values:
        raise NotKnown
    return (len(content.values), *_shape_of(content.values[0]))


# -- Data sets --------------------------------------------------------------------------------


def _data_set(item: V) -> V:
    """What a data set holds: items, all alike."""
    return Box.of("list", [item], complete=False)


def _tensor_data_set(given: Given) -> V:
    shapes = [held(one) for one in given.positional]
    rows = [Tensor(shape=one.shape[1:]) for one in shapes if isinstance(one, Tensor) and one.shape]
    if not rows or len(rows) != len(shapes):
        raise NotKnown
    return _data_set(Box.of("tuple", rows))


def _same_items(given: Given) -> V:
    inner = held(given.value("dataset"))
    # What is complete is a list of the program's own.
    if not isinstance(inner, Box) or inner.content.complete or not inner.content.values:
        raise NotKnown
    return inner


def _item(given: Given) -> V:
    items = _same_items(given)
    item = items.content.values[0] if isinstance(items, Box) else None
    parts = item.content.values if isinstance(item, Box) else (item,)
    if item is None or not any(isinstance(held(one), Tensor) for one in parts):
        raise NotKnown
    return item


def _shared_out(given: Given) -> V:
    parts = numbers(given.value("lengths"))
    if parts is None or not isinstance(given.value("lengths"), Box):
        raise NotKnown
    return Box.of("tuple", [_same_items(given)] * len(parts))


def _images(channels: int, size: int) -> TensorFunction:
    def gives(given: Given) -> V:
        shape = _transformed(given.value("transform"), (channels, size, size))
        return _data_set(Box.of("tuple", (Tensor(shape=shape), Tensor())))

    return TensorFunction(("root", "train", "transform"), gives)


def _transformed(transform: V | None, shape: Shape) -> Shape:
    """The shape of an image after its transforms, the last of which make it a tensor."""
    if not isinstance(transform, LibraryResult):
        raise NotKnown
    steps: tuple[V, ...] = (transform,)
    if transform.name.endswith(".Compose") and transform.arguments:
        listed = transform.arguments[0]
        if not isinstance(listed, Box) or not listed.content.complete:
            raise NotKnown
        steps = listed.content.values
    is_tensor = False
    for step in steps:
        module, _, name = (
            step.name.rpartition(".") if isinstance(step, LibraryResult) else ("", "", "")
        )
        if not module.startswith("torchvision.transforms") or name not in (*_ALIKE, *_SIZED):
            raise NotKnown
        is_tensor = is_tensor or name == "ToTensor"
        if name in _SIZED and isinstance(step, LibraryResult):
            sizes = Given(("size",), step.arguments, step.keywords).each("size", 2)
            shape = (shape[0], *sizes)
    if not is_tensor:
        raise NotKnown
    return shape


_ALIKE = [
    "ToTensor",
    "Normalize",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "RandomRotation",
    "ColorJitter",
    "RandomErasing",
    "RandomAffine",
    "RandAugment",
    "AutoAugment",
    "TrivialAugmentWide",
]
"""Transforms that leave the shape of a square image as it is."""
_SIZED = ("Resize", "RandomCrop", "CenterCrop", "RandomResizedCrop")

# -- Data loaders -----------------------------------------------------------------------------


def _loader(given: Given) -> V:
    if given.has("collate_fn") or given.has("batch_sampler"):
        raise NotKnown
    if "batch_size" in given.keywords and not given.has("batch_size"):
        raise NotKnown
    # The last batch may be smaller.
    known = given.has("drop_last") and given.flag("drop_last")
    batch = given.size("batch_size", 1) if known else fresh()
    return Box.of("list", [_batch(_item(given), batch)], complete=False)


def _batch(item: V, size: Dim) -> V:
    if isinstance(item, Box) and item.kind in ("tuple", "list"):
        content = item.content
        return Box.of("list", [_batch(one, size) for one in content.values], (), content.complete)
    known = held(item)
    if isinstance(known, Tensor):
        return Tensor(shape=(size, *known.shape))
    is_number = isinstance(item, Constant) and isinstance(item.value, int | float)
    return Tensor(shape=(size,)) if is_number else Anything("a part of a batch")


def _numbered(given: Given) -> V:
    pair = (Anything("the number of a batch"), _item(given))
    return Box.of("list", [Box.of("tuple", pair)], complete=False)


_DATA = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn",
         "pin_memory", "drop_last")  # fmt: skip
_SETS = {
    **dict.fromkeys(("MNIST", "FashionMNIST", "KMNIST", "QMNIST"), _images(1, 28)),
    **dict.fromkeys(("CIFAR10", "CIFAR100"), _images(3, 32)),
}

SOURCES: Mapping[str, TensorFunction] = {
    **{f"torch.{name}": TensorFunction(("size",), _made) for name in ("rand", "randn", "zeros", "ones", "empty")},
    "torch.full": TensorFunction(("size",), _made_of),
    "torch.randint": TensorFunction(("low", "high", "size"), _drawn),
    "torch.arange": TensorFunction(("start",), _counted),
    "torch.randperm": TensorFunction(("start",), _counted),
    "torch.tensor": TensorFunction(("data",), _written),
    **{f"numpy.{name}": TensorFunction(("size",), _made_of) for name in ("zeros", "ones", "empty")},
    **{f"numpy.random.{name}": TensorFunction(("size",), _made) for name in ("rand", "randn")},
    "torch.utils.data.TensorDataset": TensorFunction((), _tensor_data_set),
    "torch.utils.data.Subset": TensorFunction(("dataset", "indices"), _same_items),
    "torch.utils.data.random_split": TensorFunction(("dataset", "lengths"), _shared_out),
    **{f"torchvision.datasets.{name}": one for name, one in _SETS.items()},
    "torch.utils.data.DataLoader": TensorFunction(_DATA, _loader),
    "builtins.iter": TensorFunction(("dataset",), _same_items),
    "builtins.enumerate": TensorFunction(("dataset",), _numbered),
    "tqdm.tqdm": TensorFunction(("dataset",), _same_items),
    "builtins.next": TensorFunction(("dataset",), _item),
}  # fmt: skip
"""Functions and classes by their whole name."""
