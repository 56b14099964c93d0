"""Converts what the user names as data to a `PeopleTable`: levels of a domain, and labels.

census.csv            a table with a column of labels; also .tsv, .parquet, .jsonl; texts are numbered in their order
adult.data            Census, Credit and Bank from the UCI repository, by the names in layouts.toml
data.py:test          arrays of the user's code, .npz
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from epochzero.errors import InputError
from epochzero_models.classifier import ProgressCallback
from epochzero_models.examples import Examples
from epochzero_models.fairness.domain import Attribute, Domain, attribute_of, read_domains
from epochzero_models.reading import label_column, load_examples, read_columns

TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
LEFT_OUT = 0.3


@dataclass(frozen=True, eq=False)
class PeopleTable:
    """Rows to be classified.

    Attributes:
        name: as given by the user.
        domain: possible values of the columns.
        levels: the rows, nearest level of each cell, shape (n, attributes).
        labels: shape (n,), from 0.
        classes: names of the labels; empty if they are numbers.
    """

    name: str
    domain: Domain
    levels: Tensor
    labels: Tensor
    classes: tuple[str, ...] = ()

    @property
    def examples(self) -> Examples:
        """The rows as inputs of a model."""
        names = tuple(attribute.name for attribute in self.domain.attributes)
        return Examples(self.name, self.domain.inputs(self.levels), self.labels, names)

    def parts(self, seed: int) -> tuple[Tensor, Tensor]:
        """Return the indices of the rows to train on, and of those held out for the accuracy."""
        order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(seed))
        cut = max(1, round(LEFT_OUT * len(order)))
        return order[cut:], order[:cut]

    def take(self, rows: Tensor) -> PeopleTable:
        """Return the table with only these rows."""
        return replace(self, levels=self.levels[rows], labels=self.labels[rows])

    def called(self, label: int) -> str:
        """Return the name of a class."""
        return self.classes[label] if label < len(self.classes) else str(label)


def load_people(
    source: str,
    *,
    protected: Sequence[str] = (),
    target: str | None = None,
    domains: Path | None = None,
    most: int | None = None,
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
) -> PeopleTable:
    """Load the table that a user names.

    Args:
        source: a table, a file of the UCI repository, or the user's code.
        protected: protected columns; by default those of the known layouts.
        target: column of the labels; detected by name by default.
        domains: TOML file with possible values of columns, beyond those in the data.
        most: maximum number of rows, drawn at random.
        seed: of the sample.
        on_progress: called with the number of rows read.

    Raises:
        InputError: the table does not exist, a column is missing, or a cell is empty.
    """
    path = Path(source)
    layout = _layouts().get(path.name)
    if layout is not None and path.is_file():
        columns = _laid_out(path, layout)
        target, protected = target or layout["target"], protected or layout["protected"]
    elif path.suffix in TABLES and path.is_file():
        columns = read_columns(source)
        if "" in columns:
            raise InputError(
                f"{source}: a column has no name; remove it if it contains row numbers"
            )
    else:
        examples = load_examples(source, target=target, seed=seed, on_progress=on_progress)
        columns, target = _by_column(source, examples), ""
    label = label_column(source, columns, target) if target != "" else ""
    stated = read_domains(domains) if domains is not None else {}
    return _drawn(_table(source, columns, label, protected, stated), most, seed)


def _table(
    source: str,
    columns: Mapping[str, Any],
    label: str,
    protected: Sequence[str],
    stated: Mapping[str, Any],
) -> PeopleTable:
    names = [name for name in columns if name != label]
    for name in (*protected, *stated):
        if name not in names:
            known = ", ".join(names[:30])
            raise InputError(f"{source}: no input column {name!r}; choose one of {known}")
    if not len(columns[label]):
        raise InputError(f"{source} has no rows")
    attributes = []
    levels = []
    for name in names:
        cells = _filled(source, name, columns[name])
        attribute = attribute_of(name, cells, stated.get(name))
        attributes.append(attribute)
        levels.append(_levels(source, attribute, cells))
    domain = Domain(
        tuple(attributes), tuple(names.index(fromkey) for fromkey in dict.fromkeys(protected))
    )
    classes, labels = _labels(_filled(source, label, columns[label]))
    return PeopleTable(source, domain, torch.stack(levels, dim=1), labels, classes)


def _filled(source: str, name: str, cells: Any) -> Sequence[Any]:
    values = cells.tolist() if isinstance(cells, np.ndarray | Tensor) else list(cells)
    for row, cell in enumerate(values, 1):
        if cell is None or cell == "" or cell != cell:  # NaN alone differs from itself
            raise InputError(
                f"{source}: record {row:,}, column {name!r} is empty; add the value or remove the record"
            )
    try:
        finite = np.isfinite(np.asarray(values, np.float64))
    except (TypeError, ValueError):  # texts
        return values
    if not finite.all():
        raise InputError(
            f"{source}: record {int(finite.argmin()) + 1:,}, column {name!r} contains NaN or infinity; fill it in "
            "or remove the record"
        )
    return values


def _levels(source: str, attribute: Attribute, cells: Sequence[Any]) -> Tensor:
    if attribute.texts:
        place = {text: at for at, text in enumerate(attribute.texts)}
        for row, cell in enumerate(cells, 1):
            if str(cell) not in place:
                raise InputError(
                    f"{source}: record {row:,}, column {attribute.name!r} contains {str(cell)[:40]!r}, which is not in "
                    "its domain"
                )
        return torch.tensor([place[str(cell)] for cell in cells])
    try:
        numbers = torch.tensor([float(cell) for cell in cells], dtype=torch.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{source}: column {attribute.name!r} has a numeric domain and an invalid cell: {error}"
        ) from error
    values = torch.tensor(attribute.values, dtype=torch.float64)
    return torch.bucketize(numbers, (values[1:] + values[:-1]) / 2)


def _labels(cells: Sequence[Any]) -> tuple[tuple[str, ...], Tensor]:
    """Return integers from 0 unchanged; number the classes of other labels in their order."""
    texts = [str(cell).strip() for cell in cells]
    if all(text.isdigit() for text in texts):
        return (), torch.tensor([int(text) for text in texts])
    classes = tuple(sorted(set(texts)))
    place = {name: at for at, name in enumerate(classes)}
    return classes, torch.tensor([place[text] for text in texts])


def _by_column(source: str, examples: Examples) -> Mapping[str, Any]:
    """Return columns of examples, by number from 0 if they have no names; the labels' column is named ''."""
    if examples.inputs.ndim != 2:
        raise InputError(
            f"{source}: expected inputs of shape (n, columns), not {tuple(examples.inputs.shape)}"
        )
    names = examples.columns or tuple(map(str, range(examples.inputs.shape[1])))
    columns = dict(zip(names, examples.inputs.double().T.numpy(), strict=True))
    return {**columns, "": examples.labels}


def _drawn(table: PeopleTable, most: int | None, seed: int) -> PeopleTable:
    if most is None or len(table.labels) <= most:
        return table
    chosen = np.sort(np.random.default_rng(seed).choice(len(table.labels), most, replace=False))
    return PeopleTable(
        table.name, table.domain, table.levels[chosen], table.labels[chosen], table.classes
    )


# Files of the UCI repository


@cache
def _layouts() -> Mapping[str, Mapping[str, Any]]:
    """Return the layouts by file name."""
    text = files(__package__).joinpath("layouts.toml").read_text(encoding="utf-8")
    return {name: load for load in tomllib.loads(text).values() for name in load["files"]}


def _laid_out(path: Path, layout: Mapping[str, Any]) -> Mapping[str, Any]:
    names: list[str] = layout["columns"]
    columns: dict[str, list[str]] = {name: [] for name in names}
    leave_out = set(layout.get("leave_out", ()))
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            reader = csv.reader(lines, delimiter=layout["delimiter"], skipinitialspace=True)
            for row in reader:
                if not row or row[0].startswith("|") or row == names:
                    continue
                if len(row) != len(names):
                    raise InputError(
                        f"{path}, line {reader.line_num} has {len(row)} fields; {layout['title']} has "
                        f"{len(names)}, separated by {layout['delimiter']!r}: {', '.join(names)}"
                    )
                for name, cell in zip(names, row, strict=True):
                    columns[name].append(cell.strip().rstrip("."))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return {name: cells for name, cells in columns.items() if name not in leave_out}
