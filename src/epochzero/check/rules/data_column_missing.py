"""The program reads a column that the table does not have."""

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches

from epochzero.check.paths.analysis import InputFile
from epochzero.check.paths.contents import ReadMethod, columns, inspect
from epochzero.check.paths.faults import encoding_of, is_plain
from epochzero.check.program.events import LibraryCall, Situation, argument
from epochzero.check.program.values import Constant, Instance, Items, Value
from epochzero.check.rule import Claim, Claims, JobView, Program, Reach, Rule, claim_at, guarded

_READERS = {"pandas.read_csv": ",", "pandas.read_table": "\t"}
_OF_READING = ("usecols", "parse_dates", "index_col")
_OF_METHODS = {
    "groupby": (0, "by"),
    "sort_values": (0, "by"),
    "set_index": (0, "keys"),
    "pop": (0, "item"),
    "drop": (None, "columns"),
    "dropna": (None, "subset"),
    "drop_duplicates": (0, "subset"),
    "explode": (0, "column"),
}
"""Methods of a frame, each with the parameter that names columns."""
_PLACES = ("loc", "iloc", "at")
"""Attributes that may also add columns."""
_ADDS = ("insert", "eval", "update", "__setitem__")


def _check(view: JobView) -> Claims:
    for opened in view.paths.opened:
        if opened.access.parsed is not None:
            yield from _of_rows(view.program, opened, opened.access.parsed)
        comma = _READERS.get(opened.access.call.name)
        if comma is None or not is_plain(opened.access):
            continue
        header = columns(opened.local, encoding_of(opened.access) or "utf-8", comma)
        if header:
            yield from _of_table(view.program, opened, header)


def _of_rows(program: Program, opened: InputFile, reader: LibraryCall) -> Iterator[Claim]:
    """Lookups in the rows of ``csv.DictReader``, which have the columns as keys."""
    is_plain = reader.name == "csv.DictReader" and len(reader.arguments) == 1
    if not is_plain or reader.keywords or _skips(program):
        return
    encoding = encoding_of(opened.access) or "utf-8"
    header = columns(opened.local, encoding, ",")
    fault = inspect(opened.local, ReadMethod("csv", encoding))
    looks = [look for look in program.lookups if look.item and _is_row(look.on, reader)]
    changed = any(call.receiver and _is_row(call.receiver, reader) for call in program.calls)
    own = {look.name for look in looks if look.stored}
    if not header or changed or (fault is not None and fault.kind == "empty"):
        return
    reach = Reach.of(program)
    for look in looks:
        is_known = look.name in {*header, *own} or guarded(look.at, KeyError)
        # A condition around such code usually tests for the column.
        if not is_known and reach.severity(look.at) == "error":
            yield _claim(opened, header, look.name, replace(look.at, certain=True))


def _is_row(value: Value, reader: LibraryCall) -> bool:
    is_row = isinstance(value, Instance) and value.made_by == "csv.DictReader().__next__"
    made = reader.result
    return is_row and isinstance(made, Instance) and value.place == made.place  # type: ignore[union-attr]


def _skips(program: Program) -> bool:
    """Whether the program reads lines before the header."""
    return any(
        call.name == "builtins.next" or call.name.endswith("readline") for call in program.calls
    )


def _of_table(program: Program, opened: InputFile, header: list[str]) -> Iterator[Claim]:
    call = opened.access.call
    asked = [(name, call.at) for key in _OF_READING for name in _names(call.keywords.get(key))]
    if isinstance(call.result, Instance) and not _changed(program, call.result):
        asked += _asked_of(program, call.result)
    for name, at in dict.fromkeys(asked):
        if name not in header and not guarded(at, KeyError):
            yield _claim(opened, header, name, at)


def _changed(program: Program, frame: Instance) -> bool:
    """Whether the frame gets columns in a way that the analysis does not follow."""
    return any(
        look.on == frame and not look.item and (look.stored or look.name in _PLACES)
        for look in program.lookups
    ) or any(
        (
            call.receiver == frame
            and (call.name.rpartition(".")[2] in _ADDS or "inplace" in call.keywords)
        )
        or (frame in call.arguments and not call.name.startswith("builtins."))
        for call in program.calls
    )


def _asked_of(program: Program, frame: Instance) -> Iterator[tuple[str, Situation]]:
    """The columns that the program reads from a frame, without those that it adds."""
    own = {look.name for look in program.lookups if look.on == frame and look.stored}
    for look in program.lookups:
        known = look.at.certain and look.item and not look.stored
        if look.on == frame and known and look.name not in own:
            yield look.name, look.at
    for call in program.calls:
        method = call.name.rpartition(".")[2]
        if call.receiver == frame and method in _OF_METHODS and "errors" not in call.keywords:
            for name in _names(argument(call, *_OF_METHODS[method])):
                if name not in own:
                    yield name, call.at


def _names(value: Value | None) -> list[str]:
    values = value.values if isinstance(value, Items) and value.kind == "list" else (value,)
    return [
        item.value for item in values if isinstance(item, Constant) and isinstance(item.value, str)
    ]


def _claim(opened: InputFile, header: list[str], name: str, at: Situation) -> Claim:
    near = get_close_matches(name, header, n=1, cutoff=0.6)
    shown = opened.access.text.known or opened.path
    has = ", ".join(header[:12]) + (", ..." if len(header) > 12 else "")
    reading = at is opened.access.call.at
    return claim_at(
        at,
        message=f"the column {name!r} does not exist in {shown}, which has {has}.",
        consequence=f"ValueError: columns expected but not found: [{name!r}]"
        if reading
        else f"KeyError: {name!r}",
        fix=f"Write {near[0]!r}." if near else f"Use a column of {shown}, or add {name!r} to it.",
    )


RULE = Rule(
    category="key_not_found",
    why="A column can have another name in the target's file, often only in the test set. A read "
    "of the missing column raises a KeyError and terminates the job.",
    fix="Use the column names in the file.",
    source="Zhang et al., ICSE 2020, Table 1: Key Not Found; section 5.4: check the schema before",
    check=_check,
    examples="""
        import pandas as pd
        frame = pd.read_csv('a.csv')
        y = frame['label']  # <-
        ==> a.csv <==
        text,sentiment
        good,1
        bad,0
        ---- caught if
        -y = frame['label']  # <-
        +frame['text'] = frame['text'].str.lower()
        +print(frame.groupby(frame['label']).head(2))  # <-
        ---- caught if
        -y = frame['label']  # <-
        +y = frame.pop('label')  # <-
        ---- caught if
        -y = frame['label']  # <-
        +x = frame.drop(columns=['label'])  # <-
        ---- caught if
        -frame = pd.read_csv('a.csv')
        -y = frame['label']  # <-
        +pd.read_csv('a.csv', usecols=['text', 'label'])  # <-
        ---- ignored if
        -y = frame['label']
        +frame.loc[:, 'label'] = 1
        +print(frame['label'])
        ---- ignored if
        -y = frame['label']
        +frame['label'] = frame['sentiment'] > 0
        +frame.groupby('label').mean()
        ---- ignored if
        -y = frame['label']
        +frame.columns = ['text', 'label']
        +y = frame.pop('label')
        ---- ignored if
        -y = frame['label']
        +frame.rename(columns={'sentiment': 'label'}, inplace=True)
        +y = frame.pop('label')
        ----
        import csv
        with open('a.csv') as file:
            for row in csv.DictReader(file):
                print(row['label'])  # <-
        ==> a.csv <==
        text,sentiment
        good,1
        bad,0
        ---- ignored if
        -with open('a.csv') as file:
        -    for row in csv.DictReader(file):
        +for row in csv.DictReader(open('a.csv')):
        +    if 'label' in row:
        ----
        import csv

        rows = list(csv.DictReader(open('a.csv')))
        labels = [int(row['label']) for row in rows]
        ==> a.csv <==
        text,sentiment
        ----
        import csv
        rows = csv.DictReader(open('a.csv'), ['text', 'label'])
        for row in rows:
            print(row['label'])
        ==> a.csv <==
        good,1
    """,
)
