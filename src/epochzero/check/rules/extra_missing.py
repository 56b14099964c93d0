"""A call needs a module that only an extra of the library installs."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from epochzero.check.program.events import LibraryCall, Situation, argument
from epochzero.check.program.values import Constant, Items, Value
from epochzero.check.rule import Claims, JobView, Program, Rule, Target, claim_at, guarded
from epochzero.check.rules.distributions import providers
from epochzero.check.tables import read_table
from epochzero.check.target.packages import normalized
from epochzero.check.view.api import class_of, reached

_UNKNOWN = object()


@cache
def _table() -> Mapping[str, Mapping[str, tuple[Mapping[str, Any], ...]]]:
    """The entries by ``call`` or ``import``, and by name."""
    found: dict[str, dict[str, tuple[Mapping[str, Any], ...]]] = {}
    for kind, entries in read_table(__package__, "extra_missing.toml").items():
        for entry in entries:
            for name in entry["names"]:
                of_name = found.setdefault(kind, {})
                of_name[name] = (*of_name.get(name, ()), entry)
    return found


def _check(view: JobView) -> Claims:
    if view.target.distributions is None or view.job.launch_script.installs:
        return
    reach = view.reach
    for name, entry, at in _needing(view.program):
        if not _is_there(entry, view.target) and not guarded(at, _raised(entry)):
            yield claim_at(
                at,
                severity=reach.severity(at),
                message=f"{name} needs {' or '.join(entry['needs'])} here, but no distribution on the "
                "target provides it.",
                consequence=entry["error"],
                fix=f"Install {entry['install']}.",
            )


def _raised(entry: Mapping[str, Any]) -> type[ImportError]:
    """The exception that a handler has to name."""
    absent = entry["error"].startswith(ModuleNotFoundError.__name__)
    return ModuleNotFoundError if absent else ImportError


def _needing(program: Program) -> Iterator[tuple[str, Mapping[str, Any], Situation]]:
    """Calls and imports that need more than their library, each module once."""
    imported: set[str] = set()
    for event in program.imports:
        for module in (event.module, *(f"{event.module}.{name}" for name in event.names)):
            for entry in _table()["import"].get(module, ()):
                if module not in imported:
                    imported.add(module)
                    yield module, entry, event.at
    known = _table()["call"]
    for call in program.calls:
        for entry in known.get(call.name) or known.get(class_of(call.name), ()):
            if imported.isdisjoint(parent for parent in _above(call.name)) and _is_meant(
                entry, call
            ):
                yield call.name, entry, call.at


def _above(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _is_meant(entry: Mapping[str, Any], call: LibraryCall) -> bool:
    """Whether the arguments are such that the call needs the extra."""
    for name, spared in entry.get("unless", {}).items():
        if name in call.keywords and _plain(call.keywords[name]) == spared:
            return False
    if "parameter" not in entry:
        return True
    text = _plain(argument(call, entry["at"], entry["parameter"]))
    if "begins" not in entry and "ends" not in entry:
        return text is not _UNKNOWN and text is not None and text is not False
    return isinstance(text, str) and (
        text.startswith(tuple(entry.get("begins", ())))
        or text.endswith(tuple(entry.get("ends", ())))
    )


def _plain(value: Value | None) -> object:
    """A constant, or a list of constants."""
    if isinstance(value, Items) and value.complete:
        return [_plain(item) for item in value.values]
    return value.value if isinstance(value, Constant) else _UNKNOWN


def _is_there(entry: Mapping[str, Any], target: Target) -> bool:
    """Whether the target has the required module, or lacks the library itself."""
    here = {
        normalized(name): distribution
        for name, distribution in (target.distributions or {}).items()
    }
    library = providers(entry["names"][0].partition(".")[0], here)
    if not library:
        return True  # Reported by module-missing.
    if "since" in entry and not all(
        reached(distribution.version, entry["since"]) for distribution in library
    ):
        return True
    return any(name in here for name in entry["brings"]) or any(
        providers(module, here) for module in entry["needs"]
    )


RULE = Rule(
    category="library_not_found",
    why="Some library functions import an optional module only when the program calls them. "
    "Examples are the engine of a Gymnasium environment and the reader of a file format. The "
    "import of the library itself succeeds.",
    fix="Install the library with the required extra.",
    source="gymnasium's documentation of its extras; pandas, Installation, optional dependencies",
    check=_check,
    examples="""
        import gymnasium as gym

        env = gym.make('LunarLander-v3')  # <-
        ==> target.toml <==
        [distributions.gymnasium]
        version = "1.2.2"
        modules = ["gymnasium"]
        ---- ignored if
        -env = gym.make('LunarLander-v3')
        +try:
        +    gym.make('LunarLander-v3')
        +except Exception:
        +    pass
        ----
        def writer():
            from torch.utils.tensorboard import SummaryWriter  # <-

            return SummaryWriter('runs')


        writer()
        ==> target.toml <==
        [distributions]
        torch = "2.9.1"
        transformers = "5.1.0"
        ---- ignored if
        -    from torch.utils.tensorboard import SummaryWriter
        +    try:
        +        from torch.utils.tensorboard import SummaryWriter
        +    except ModuleNotFoundError:
        +        from tensorboardX import SummaryWriter
        ----
        import torch

        model = torch.nn.Linear(2, 2)
        torch.onnx.export(model, torch.ones(2), 'm.onnx')
        ==> target.toml <==
        [distributions]
        torch = "2.8.0"
        transformers = "5.1.0"
        ---- ignored if
        -torch.onnx.export(model, torch.ones(2), 'm.onnx')
        +torch.onnx.export(model, torch.ones(2), 'm.onnx', dynamo=False)
        @@
        -torch = "2.8.0"
        +torch = "2.9.1"
        ----
        $ python train.py auto
        import sys
        from transformers import AutoModel

        model = AutoModel.from_pretrained('bert', device_map=sys.argv[1])
        ==> target.toml <==
        [distributions]
        torch = "2.9.1"
        transformers = "5.1.0"
        accelerate = "1.10.0"
        ----
        import gymnasium as gym

        env = gym.make('LunarLander-v3')
    """,
)
