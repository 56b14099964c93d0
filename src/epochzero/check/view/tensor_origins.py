"""The origins of a program's tensors, and the types of their numbers."""

from __future__ import annotations

from functools import lru_cache

from epochzero.check.findings import SourceLocation
from epochzero.check.program.events import Called
from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant, External, Instance, Items, Value

FLOATING, LONG = "floating", "Long"
_OF_DTYPE = {
    **dict.fromkeys(("float", "float16", "float32", "float64", "half", "double", "bfloat16"), FLOATING),
    **dict.fromkeys(("long", "int64"), LONG),
    **dict.fromkeys(("int", "int32"), "Int"),
    "bool": "Bool",
}  # fmt: skip
_OF_METHOD = {
    **dict.fromkeys(("float", "half", "double", "bfloat16"), FLOATING),
    **dict.fromkeys(("long", "argmax", "argmin", "argsort", "one_hot", "randint", "randperm",
                     "multinomial", "LongTensor", "bincount"), LONG),
    **dict.fromkeys(("softmax", "log_softmax", "sigmoid", "tanh", "relu", "gelu", "logsigmoid"), FLOATING),
    **dict.fromkeys(("mean", "std", "var", "rand", "randn", "zeros", "ones", "linspace",
                     "FloatTensor", "rand_like", "randn_like"), FLOATING),
    "int": "Int",
    "bool": "Bool",
}  # fmt: skip
"""Number types by the last part of what created a tensor, unless a ``dtype`` is given."""
_LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "LayerNorm", "Dropout",
           "ReLU", "GELU", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Embedding")  # fmt: skip
_KEEPING = frozenset(["to", "cuda", "cpu", "clone", "detach", "contiguous", "view", "reshape", "flatten",
                      "squeeze", "unsqueeze", "repeat", "expand", "permute", "transpose", "t", "type",
                      "requires_grad_", "view_as", "expand_as"])  # fmt: skip
_WRAPPERS = frozenset(["builtins.enumerate", "builtins.iter", "tqdm.tqdm", "tqdm.auto.tqdm",
                       "tqdm.notebook.tqdm", "rich.progress.track", "itertools.islice"])  # fmt: skip
_LOADER = "torch.utils.data.DataLoader"
_IMAGES = ("CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "KMNIST", "SVHN", "ImageFolder", "STL10")


class Origins:
    """The calls that created the values of a program."""

    def __init__(self, program: Program) -> None:
        self._made: dict[tuple[SourceLocation, str], Called | None] = {}
        for call in program.calls:
            if isinstance(call.result, Instance) and call.result.place is not None:
                key = call.result.place, call.result.made_by
                before = self._made.get(key, call)
                self._made[key] = call if before is not None and _alike(before, call) else None

    @staticmethod
    @lru_cache(maxsize=1)  # All rules query the same program in succession.
    def of(program: Program) -> Origins:
        """The origins of a program's values."""
        return Origins(program)

    def maker(self, value: Value | None) -> Called | None:
        """The call that created a value; None if it is unknown or not unique."""
        if not isinstance(value, Instance) or value.place is None:
            return None
        return self._made.get((value.place, value.made_by))

    def before(self, value: Value | None) -> Value | None:
        """A tensor before it was moved or reshaped; None if unknown."""
        for _ in range(16):
            if not isinstance(value, Instance) or _last(value) not in _KEEPING:
                return value
            call = self.maker(value)
            value = call.receiver if call is not None else None
        return None

    def number_type(self, value: Value | None) -> str:
        """The type of a tensor's numbers: `FLOATING`, `LONG`, ``Int`` or ``Bool``; empty if unknown."""
        for _ in range(16):
            if not isinstance(value, Instance):
                return ""
            if value.part_of is not None and value.place is None:
                inner = _of_batch(value)
                if isinstance(inner, str):
                    return inner
                value = inner
            elif (found := _made_as(value)) or _last(value) not in _KEEPING or _may_cast(value):
                return found
            else:
                call = self.maker(value)
                value = call.receiver if call is not None else None
        return ""


def _alike(one: Called, other: Called) -> bool:
    return one.receiver == other.receiver and one.arguments == other.arguments


def unwrapped(value: Value | None) -> Value | None:
    """The iterable of a loop, without wrappers that count or show its iterations."""
    while isinstance(value, Instance) and value.made_by in _WRAPPERS and value.arguments:
        value = value.arguments[0]
    return value


def _last(value: Instance) -> str:
    return value.made_by.rpartition(".")[2]


def _made_as(value: Instance) -> str:
    """The type that the last call gives its tensor; empty if it determines none."""
    last = _last(value)
    given = value.keywords.get("dtype")
    if last in ("to", "type"):
        given = next((one for one in value.arguments if isinstance(one, External)), given)
    if given is not None:
        name = given.name.removeprefix("torch.") if isinstance(given, External) else ""
        return _OF_DTYPE.get(name, "")
    if last == "tensor" and value.made_by == "torch.tensor":
        return _of_numbers(value.arguments[0] if value.arguments else None)
    if last == "__call__":
        layer = value.made_by.removesuffix("().__call__")
        return FLOATING if layer in [f"torch.nn.{one}" for one in _LAYERS] else ""
    return _OF_METHOD.get(last, "") if value.made_by.startswith(("torch.", "builtins.")) else ""


def _may_cast(value: Instance) -> bool:
    """Whether ``x.to(y)`` may convert to the type of ``y`` instead of moving to a device."""
    moved = value.arguments[:1] if _last(value) in ("to", "type") else ()
    devices = [one for one in moved if isinstance(one, Constant) or _is_device(one)]
    return len(devices) < len(moved) or "dtype" in value.keywords


def _is_device(value: Value) -> bool:
    return isinstance(value, Instance) and value.made_by == "torch.device"


def _of_numbers(value: Value | None) -> str:
    """The type of a tensor that is created from lists of numbers."""
    while isinstance(value, Items) and value.values and value.complete:
        value = value.values[0]
    number = value.value if isinstance(value, Constant) else None
    if isinstance(number, bool):
        return "Bool"
    return FLOATING if isinstance(number, float) else LONG if isinstance(number, int) else ""


def _of_batch(value: Instance) -> Value | str | None:
    """The origin of a part of a batch, or the type of its numbers."""
    loader = unwrapped(value.part_of)
    if (
        not isinstance(loader, Instance)
        or loader.made_by != _LOADER
        or loader.keywords.get("collate_fn")
    ):
        return None
    way = value.made_by.partition("()[]")[2].removeprefix(
        "[1]" if loader is not value.part_of else ""
    )
    data = loader.arguments[0] if loader.arguments else loader.keywords.get("dataset")
    position = way[1:-1]
    if not isinstance(data, Instance) or not position.isdecimal():
        return None
    if data.made_by == "torch.utils.data.TensorDataset":
        at = int(position)
        return data.arguments[at] if at < len(data.arguments) else None
    is_label = data.made_by.startswith("torchvision.datasets.") and _last(data) in _IMAGES
    return LONG if is_label and position == "1" else None
