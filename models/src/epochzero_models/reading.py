"""Converts what the user names as data to `Examples`.

data.py:test      a function of the user that returns a torch dataset or loader, a pair of arrays, or a
                  mapping of arrays
test.npz          arrays: one whose first axis counts the inputs, and one with the labels
test.csv          a table with a column of labels; also .tsv, .parquet, .jsonl
test/             images of one size, in a directory for each class
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from epochzero.data.formats import Faults, needed
from epochzero.data.source import TableSource, find_sources, read
from epochzero.errors import InputError
from epochzero_models.classifier import ProgressCallback
from epochzero_models.examples import Examples
from epochzero_models.seeds import seeded
from epochzero_models.user_code import as_input_error, is_own_code, made_by

LABEL_NAMES = ("y", "label", "labels", "target", "targets", "class")
INPUT_NAMES = ("x", "X", "inputs", "images", "data", "features")
MOST_BYTES = 8 << 30
MOST_GROUPS = 50
Columns = Mapping[str, Any]


def load_examples(
    source: str,
    *,
    target: str | None = None,
    group: str | None = None,
    labeled: bool = True,
    most: int | None = None,
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
) -> Examples:
    """Load the examples that a user names.

    Args:
        source: ``file.py:function``, a file of arrays or a table, or a directory of images.
        target: column or array of the labels; detected by name by default.
        group: column or array of the subgroups. Numeric groups of a table remain inputs, texts do not.
        labeled: whether labels are needed; if not, the label of an example without one is 0.
        most: maximum number of examples, drawn at random.
        seed: of the sample, and of the user's code.
        on_progress: called with the number of examples read.

    Raises:
        InputError: the data do not exist, or are not labeled examples of one shape.
    """
    if is_own_code(source):
        with seeded(seed):
            made = made_by(source)
            with as_input_error(source):
                examples = _from_code(source, made, target, group, labeled, on_progress)
        return examples.drawn(most, seed)
    path = Path(source)
    found = find_sources(path)
    if all(table.format.record_is_file and table.format.name == "images" for table in found):
        _refuse_options(source, target, group)
        return _from_images(source, found, labeled, most, seed, on_progress)
    examples = _from_columns(source, read_columns(source), target, group, labeled)
    return examples.drawn(most, seed)


def _refuse_options(source: str, target: str | None, group: str | None) -> None:
    for option, given in (("--target", target), ("--group", group)):
        if given is not None:
            raise InputError(f"{source}: {option} names a column, and images have none")


# Code


def _from_code(
    source: str,
    made: Any,
    target: str | None,
    group: str | None,
    labeled: bool,
    on_progress: ProgressCallback | None,
) -> Examples:
    if isinstance(made, Examples):
        return made
    if isinstance(made, Mapping):
        return _from_columns(source, made, target, group, labeled)
    _refuse_options(source, target, group)
    if not labeled and hasattr(made, "shape"):
        return Examples(source, _inputs(source, made), torch.zeros(len(made), dtype=torch.long))
    if isinstance(made, tuple) and len(made) == 2 and all(hasattr(v, "shape") for v in made):
        return Examples(source, _inputs(source, made[0]), _whole_labels(source, made[1]))
    if isinstance(made, Iterable) or hasattr(made, "__getitem__"):
        return _collected(source, made, labeled, on_progress)
    raise InputError(
        f"{source}: returns a {type(made).__name__}; expected a dataset or loader of torch, a pair of arrays "
        "(inputs, labels), or a mapping of arrays"
    )


def _collected(
    source: str, made: Any, labeled: bool, on_progress: ProgressCallback | None
) -> Examples:
    """Collect all items of a dataset, or batches of a loader."""
    batched = isinstance(made, torch.utils.data.DataLoader)
    inputs: list[Tensor] = []
    labels: list[Tensor] = []
    size = 0
    for number, item in enumerate(_items(made), 1):
        x, y = _pair(source, item if labeled else _with_label(item, batched), number)
        inputs.append(x if batched else x[None])
        labels.append(y if batched else y[None])
        size += x.numel() * x.element_size()
        if size > MOST_BYTES:
            raise InputError(
                f"{source} requires more than {MOST_BYTES >> 30} GB of memory; pass a part of the data"
            )
        if on_progress:
            on_progress(f"{source}: {'batches' if batched else 'examples'} read", number)
    if not inputs:
        raise InputError(f"{source} has no examples")
    together = _together(source, "inputs", inputs), _together(source, "labels", labels)
    return Examples(source, together[0], _whole_labels(source, together[1]))


def _together(source: str, what: str, parts: Sequence[Tensor]) -> Tensor:
    shapes = {tuple(part.shape[1:]) for part in parts}
    if len(shapes) > 1:
        first, second = sorted(shapes)[:2]
        raise InputError(f"{source}: {what} differ in their shapes, {first} and {second}")
    return torch.cat(list(parts))


def _items(made: Any) -> Iterator[Any]:
    # A map-style torch dataset need not raise the IndexError that would end its iteration.
    if hasattr(made, "__getitem__") and hasattr(made, "__len__"):
        return (made[at] for at in range(len(made)))
    return iter(made)


def _with_label(item: Any, batched: bool) -> Any:
    """Return an item with its label, or 0 if it has none."""
    inputs, *rest = _named(item) if isinstance(item, Mapping | Sequence) else (item,)
    return inputs, rest[0] if rest and rest[0] is not None else np.zeros(
        len(inputs) if batched else ()
    )


def _named(item: Any) -> Any:
    """Return what a mapping calls input and label; other items unchanged."""
    if not isinstance(item, Mapping):
        return item
    keys = ((name for name in names if name in item) for names in (INPUT_NAMES, LABEL_NAMES))
    return tuple(item.get(next(found, "")) for found in keys)


def _pair(source: str, item: Any, number: int) -> tuple[Tensor, Tensor]:
    item = _named(item)
    if not isinstance(item, Sequence) or len(item) < 2 or item[0] is None or item[1] is None:
        raise InputError(f"{source}: item {number} is a {type(item).__name__}, not (input, label)")
    try:
        return _as_inputs(torch.as_tensor(item[0])), torch.as_tensor(item[1])
    except (TypeError, ValueError, RuntimeError) as error:
        kinds = f"{type(item[0]).__name__} and {type(item[1]).__name__}"
        raise InputError(
            f"{source}: item {number} is a pair of {kinds}, which cannot be converted to tensors ({error})"
        ) from error


# Arrays and tables


def read_columns(source: str) -> Columns:
    """Return all records of a table by column.

    Raises:
        InputError: it cannot be read, has faults, or is a directory of several tables.
    """
    path = Path(source)
    tables = find_sources(path)
    if len(tables) > 1:
        raise InputError(f"{source} has {len(tables)} tables; name the file of one of them")
    faults = Faults()
    root = path if path.is_dir() else path.parent
    parts: dict[str, list[Any]] = {}
    for batch in read(tables[0], root, faults):
        for name, values in batch.columns.items():
            parts.setdefault(name, []).append(values)
    for fault in faults.counted(path):
        where = f", record {fault.record:,}" if fault.record else ""
        raise InputError(f"{path}{where}: {fault.message or fault.kind.replace('_', ' ')}")
    if not parts:
        raise InputError(f"{path} has no examples")
    return {name: _joined(values) for name, values in parts.items()}


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [value for part in parts for value in part]


def _from_columns(
    source: str, columns: Columns, target: str | None, group: str | None, labeled: bool
) -> Examples:
    without = not labeled and (target or "") not in columns and not {*LABEL_NAMES} & {*columns}
    label = "" if without else label_column(source, columns, target)
    if group is not None and group not in columns:
        raise InputError(f"{source} has no column {group!r}; {_known(columns)}")
    rest = {name: values for name, values in columns.items() if name != label}
    groups = () if group is None else _groups(source, group, columns[group])
    names: tuple[str, ...] = ()
    wide = [name for name, values in rest.items() if np.ndim(values) > 1]
    if wide:
        name = next((name for name in INPUT_NAMES if name in wide), wide[0])
        if len(wide) > 1 and name not in INPUT_NAMES:
            raise InputError(
                f"{source}: several arrays could be the inputs, {wide}; name one of them x"
            )
        inputs = _inputs(source, rest[name])
    else:
        names = tuple(n for n, values in rest.items() if n != group or _are_numbers(values))
        if not names:
            raise InputError(f"{source} has no column except that of the labels")
        values = [_numbers(source, name, rest[name]) for name in names]
        inputs = torch.from_numpy(np.stack(values, axis=1))
    labels = np.zeros(len(inputs)) if without else columns[label]
    classes, numbers = _numbered(source, labels)
    return Examples(source, inputs, numbers, names, groups, classes if labeled else ())


def label_column(source: str, columns: Columns, target: str | None) -> str:
    """Return the column of the labels: the given one, or the only one with a usual name.

    Raises:
        InputError: there is none, or several.
    """
    if target is not None:
        if target not in columns:
            raise InputError(f"{source} has no column {target!r}; {_known(columns)}")
        return target
    named = [name for name in columns if name in LABEL_NAMES]
    if len(named) != 1:
        raise InputError(
            f"{source}: the column of the labels is unknown; pass --target; {_known(columns)}"
        )
    return named[0]


def _known(columns: Columns) -> str:
    names = ", ".join(islice(map(str, columns), 12))
    return f"there are {names}{' and others' if len(columns) > 12 else ''}"


def _groups(source: str, name: str, values: Any) -> tuple[str, ...]:
    groups = tuple(str(value) for value in np.asarray(values).tolist())
    if len(set(groups)) > MOST_GROUPS:
        raise InputError(
            f"{source}: column {name!r} has {len(set(groups)):,} values; a group has at most "
            f"{MOST_GROUPS}: group them into ranges"
        )
    return groups


def _are_numbers(values: Any) -> bool:
    try:
        np.asarray(values, np.float32)
    except (TypeError, ValueError):
        return False
    return True


def _numbers(source: str, name: str, values: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Convert a column of a table; an empty cell becomes NaN, which `Examples` rejects with its position."""
    filled = [np.nan if value is None or value == "" else value for value in values]
    try:
        return np.asarray(filled, np.float32)
    except (TypeError, ValueError):
        text = next(value for value in filled if not _are_numbers([value]))
        raise InputError(
            f"{source}: column {name!r} contains {str(text)[:40]!r}, which is not a number: encode strings as the "
            "numbers that the model was trained with"
        ) from None


def _numbered(source: str, values: Any) -> tuple[tuple[str, ...], Tensor]:
    """Return integers unchanged; number names of classes from 0 in alphabetical order, and return the names too."""
    is_array = isinstance(values, np.ndarray) and values.dtype.kind not in "USO"
    if isinstance(values, Tensor) or is_array:
        return (), _whole_labels(source, values)
    texts = [str(value) for value in values]
    if all(text.lstrip("-").isdigit() for text in texts):
        return (), torch.tensor([int(text) for text in texts])
    classes, numbers = np.unique(texts, return_inverse=True)
    return tuple(classes.tolist()), torch.from_numpy(numbers)


def _whole_labels(source: str, values: Any) -> Tensor:
    labels = torch.as_tensor(values)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(
            f"{source}: labels have the shape {tuple(labels.shape)}; expected one class index per example; "
            "convert one-hot labels with .argmax(1)"
        )
    if labels.is_floating_point() and not bool((labels == labels.round()).all()):
        raise InputError(f"{source}: labels are not integers: expected one class index per example")
    return labels.long()


def _inputs(source: str, values: Any) -> Tensor:
    try:
        return _as_inputs(torch.as_tensor(values))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{source}: inputs are not numeric: {error}") from error


def _as_inputs(values: Tensor) -> Tensor:
    """Keep integers, which are tokens; convert everything else to float32."""
    return values.long() if values.dtype in (torch.int64, torch.int32) else values.float()


# Images


def _from_images(
    source: str,
    found: Sequence[TableSource],
    labeled: bool,
    most: int | None,
    seed: int,
    on_progress: ProgressCallback | None,
) -> Examples:
    """Read pixels from 0 to 1, channels first; classes in the order of their directory names."""
    if len(found) > 1:
        names = ", ".join(table.name for table in found)
        raise InputError(f"{source} has several sets of images ({names}); name one of them")
    files = found[0].files
    classes = {name: at for at, name in enumerate(sorted({file.parent.name for file in files}))}
    if labeled and len(classes) < 2:
        raise InputError(f"{source}: expected one directory of images per class, at least two")
    if most is not None and len(files) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(len(files), most, replace=False))
        files = tuple(files[at] for at in chosen)
    pixels: list[Tensor] = []
    for file in files:
        pixels.append(_pixels(file))
        if pixels[-1].shape != pixels[0].shape:
            raise InputError(
                f"{file} has the shape {tuple(pixels[-1].shape)}, but {files[0]} has "
                f"{tuple(pixels[0].shape)}: all images must have the same size"
            )
        if on_progress:
            on_progress(f"{source}: images read", len(pixels), len(files))
    labels = torch.tensor([classes[file.parent.name] for file in files])
    return Examples(source, torch.stack(pixels), labels, classes=tuple(classes) if labeled else ())


def _pixels(file: Path) -> Tensor:
    pillow = needed("PIL.Image", "reading images")
    try:
        with pillow.open(file) as image:
            plain = image if image.mode in ("L", "RGB") else image.convert("RGB")
            pixels = np.asarray(plain, np.float32) / 255
    except Exception as error:  # the decoders raise almost anything for damaged files
        raise InputError(f"{file} is not a readable image: {error}") from error
    return torch.from_numpy(np.atleast_3d(pixels).transpose(2, 0, 1).copy())
