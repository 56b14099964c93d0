"""The saved files do not fit on the file system."""

from collections.abc import Iterator
from math import prod

from epochzero.check.paths.accesses import Access, accesses_of
from epochzero.check.paths.platform import Platform
from epochzero.check.paths.sizes import parameters, saved_bytes, times_saved
from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.values import Constant, External, Items, Value, constant_of, integer_of
from epochzero.check.rule import Claim, Claims, JobView, Program, Rule, Unknown, claim_at

_SAVES = ("torch.save", "safetensors.torch.save_file", "safetensors.torch.save_model")
_BYTES = {
    "float16": 2, "float32": 4, "float64": 8, "float": 8, "double": 8, "half": 2, "single": 4,
    "int8": 1, "uint8": 1, "bool": 1, "bool_": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "int64": 8, "uint64": 8, "int": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Widths of NumPy's number types, in bytes."""


def _check(view: JobView) -> Claims:
    platform = view.paths.platform
    for call in view.calls:
        if call.name in _SAVES:
            yield from _saved(view.program, platform, call)
        elif call.name == "numpy.memmap":
            yield from _mapped(platform, call)
        elif call.name.endswith("TrainingArguments"):
            yield from _trained(view.program, platform, call)


def _saved(program: Program, platform: Platform, call: LibraryCall) -> Iterator[Claim | Unknown]:
    """A call that saves a model, once or in a loop."""
    for access in accesses_of(call, {}):
        free = _free(platform, access)
        value = argument(call, 0, "obj" if call.name == "torch.save" else "tensors")
        if free is None or value is None:
            continue
        size = saved_bytes(program, value)
        if size is None:
            reason = "the size of the saved data is unknown"
            what = "whether the checkpoints fit on their file system"
            yield Unknown(what, reason, call.at.place)
        else:
            retained = 1 if access.text.known else times_saved(program, call.at.place, call.at.via)
            yield from _judged(platform, call, access, size, retained, free)


def _trained(program: Program, platform: Platform, call: LibraryCall) -> Iterator[Claim]:
    """Checkpoints of the transformers Trainer: weights and the states of AdamW."""
    loads = [call.result for call in program.calls if call.name.endswith(".from_pretrained")]
    counts = [count for entry in loads if (count := parameters(program, entry)) is not None]
    retained = _kept(call)
    for access in accesses_of(call, {}):
        free = _free(platform, access)
        if counts and retained and free is not None and access.use.path == "output_dir":
            yield from _judged(platform, call, access, max(counts) * 12, retained, free)


def _mapped(platform: Platform, call: LibraryCall) -> Iterator[Claim]:
    """A file that is created for an array of known shape, and filled later."""
    creates = constant_of(argument(call, 2, "mode")) == "w+"
    size = _array_bytes(argument(call, 4, "shape"), argument(call, 1, "dtype"))
    for access in accesses_of(call, {}):
        free = _free(platform, access)
        if creates and free is not None and size:
            yield from _judged(platform, call, access, size, 1, free)


def _array_bytes(shape: Value | None, dtype: Value | None) -> int | None:
    """The size of an array; None if its shape or its number type is not known."""
    sizes = shape.values if isinstance(shape, Items) and shape.complete else (shape,)
    name = dtype.name.rpartition(".")[2] if isinstance(dtype, External) else ""
    if isinstance(dtype, Constant) and isinstance(dtype.value, str):
        name = dtype.value
    width = _BYTES.get(name)
    counts = [
        size.value for size in sizes if isinstance(size, Constant) and type(size.value) is int
    ]
    if width is None or len(counts) != len(sizes):
        return None
    return prod(counts) * width


def _kept(call: LibraryCall) -> int:
    """How many checkpoints the Trainer retains; 0 if that is not known."""
    names = ("save_total_limit", "num_train_epochs", "max_steps", "save_steps")
    limit, epochs, steps, every = (integer_of(call.keywords.get(name)) or 0 for name in names)
    strategy = constant_of(call.keywords.get("save_strategy"))
    if strategy == "no":
        return 0
    if limit:
        return limit
    return epochs if strategy == "epoch" else steps // (every or 500)


def _judged(
    platform: Platform, call: LibraryCall, access: Access, size: float, retained: int, free: int
) -> Iterator[Claim]:
    if size * retained <= free:
        return
    many = f"{retained} checkpoints of {_shown(size)} each" if retained > 1 else f"{_shown(size)}"
    where = access.text.beginning or "the place"
    yield claim_at(
        call.at,
        severity="error" if call.at.certain or call.at.loop else "warning",
        message=f"{access.function} saves {many}, {_shown(size * retained)} in total, to {where}, which "
        f"has {_shown(free)} free.",
        consequence="OSError: [Errno 28] No space left on device (or Disk quota exceeded)",
        fix="Retain fewer checkpoints, overwrite one, save to a larger file system, or request "
        "more quota.",
    )


def _free(platform: Platform, access: Access) -> int | None:
    """Bytes that can still be written to the path's file system; None if not known."""
    beginning = access.text.beginning
    if not beginning or (not platform.working_folder and not beginning.startswith("/")):
        return None
    mount = platform.mount(platform.absolute(beginning))
    known = [n for n in (mount.free_bytes, mount.quota_bytes) if n is not None] if mount else []
    return min(known) if known else None


def _shown(size: float) -> str:
    for unit, bytes_ in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size / 1e3:.0f} kB"


RULE = Rule(
    category="storage_full",
    why="The total size of the retained checkpoints is known before the run. The job may run for "
    "hours before the file system is full or the quota is exhausted.",
    fix="Retain fewer checkpoints, or save to a larger file system.",
    source="mlfoundations/open_lm #154; open-mmlab/mmdetection #12069: the quota, not the free space",
    check=_check,
    examples="""
        import numpy as np
        x = np.memmap('/scratch/x', dtype=np.float32, mode='w+', shape=(1000000, 512))  # <-
        ==> target.toml <==
        [[mounts]]
        path = "/scratch"
        free_bytes = 100000000
        ---- ignored if
        -x = np.memmap('/scratch/x', dtype=np.float32, mode='w+', shape=(1000000, 512))
        +x = np.memmap('/scratch/x', dtype=np.float32, mode='r', shape=(1000000, 512))
        ---- caught if
        -import numpy as np
        -x = np.memmap('/scratch/x', dtype=np.float32, mode='w+', shape=(1000000, 512))  # <-
        +import torch
        +from torch import nn
        +
        +
        +class Net(nn.Module):
        +    def __init__(self):
        +        super().__init__()
        +        self.table = nn.Embedding(50000, 512)
        +        self.head = nn.Linear(512, 50000)
        +
        +
        +model = Net()
        +torch.save(model, '/scratch/net.pt')  # <-
        ---- caught if
        -import numpy as np
        -x = np.memmap('/scratch/x', dtype=np.float32, mode='w+', shape=(1000000, 512))  # <-
        +from transformers import AutoModel, TrainingArguments
        +model = AutoModel.from_pretrained('gpt2')
        +args = TrainingArguments('/scratch/out', save_total_limit=3)  # <-
        ----
        import torch
        model = torch.nn.Linear(4096, 4096)
        for epoch in range(5):
            torch.save(model.state_dict(), f'/scratch/{epoch}.pt')  # <-
        ==> target.toml <==
        [[mounts]]
        path = "/scratch"
        free_bytes = 100000000
        ---- caught if
        -for epoch in range(5):
        -    torch.save(model.state_dict(), f'/scratch/{epoch}.pt')  # <-
        +optimizer = torch.optim.Adam(model.parameters())
        +torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, '/scratch/last.pt')  # <-
        ---- ignored if
        -for epoch in range(5):
        +for epoch in range(1):
        ----
        import torch
        model = torch.nn.Linear(4096, 4096)
        for epoch in range(50):
            torch.save(model.state_dict(), f'/scratch/{epoch}.pt')
    """,
)
