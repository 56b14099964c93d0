"""Writes ``docs/numbers.md`` and the table of figures in the README from the result files.

python bench/figures.py           # write both
python bench/figures.py --check   # exit 1 if they are not up to date

``figures.toml`` lists the rows. A row contains no figure: it names a result file and the places in
it, as ``{part.held_out.share:.0%}``. Whether a target is reached and whether a figure is stale is
computed here, so neither can be typed in.
"""

from __future__ import annotations

import json
import operator
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from common import REPOSITORY, RESULTS, content_digest, measured_paths

PAGE = REPOSITORY / "docs" / "numbers.md"
README = REPOSITORY / "README.md"
TABLE = tomllib.loads((REPOSITORY / "bench" / "figures.toml").read_text(encoding="utf-8"))
PLACEHOLDER = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")
TYPED_FIGURE = re.compile(r"(?<![\w-])\d")
"""A number that stands alone; ``GPT-2`` and ``p95`` are names."""
COMPARISONS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    ">=": ("at least", operator.ge),
    "<=": ("at most", operator.le),
}
EVALUATIONS = {
    "first": "held out, first",
    "later": "held out, later",
    "used": "used",
    "cost": "–",
}
STALE = "†"


@cache
def result(name: str) -> Mapping[str, Any]:
    """The result file ``bench/results/NAME.json``."""
    record: Mapping[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return record


def look_up(values: Any, path: str) -> Any:
    """The value at a dotted path; a key may contain dots itself, and a number is a list's index.

    Raises:
        KeyError: the path leads nowhere.
    """
    if not path:
        return values
    if isinstance(values, list):
        number, _, rest = path.partition(".")
        if number.isdigit() and int(number) < len(values):
            return look_up(values[int(number)], rest)
    for key in sorted(values, key=len, reverse=True) if isinstance(values, Mapping) else ():
        if path == key or path.startswith(key + "."):
            return look_up(values[key], path[len(key) + 1 :])
    raise KeyError(path)


def measured_figure(text: str, name: str) -> str:
    """The text with its placeholders filled in, which must not contain any other figure.

    Raises:
        ValueError: a figure is typed into the text.
        KeyError: the result file lacks a place that the text names.
    """
    if TYPED_FIGURE.search(PLACEHOLDER.sub("", text)):
        raise ValueError(f"figure typed into a row of {name}: {text!r}; name its place instead")
    return filled(text, name)


def filled(text: str, name: str) -> str:
    """The text with each placeholder replaced by its figure from a result file."""
    numbers = result(name)["numbers"]

    def figure(match: re.Match[str]) -> str:
        value = look_up(numbers, match[1])
        return format(value, match[2] or ("," if isinstance(value, int) else "g"))

    return PLACEHOLDER.sub(figure, text)


def target(row: Mapping[str, str]) -> str:
    """The target in words, and whether the figure reaches it."""
    match = re.fullmatch(
        r"\{([^{}:]+):?([^{}]*)\} (>=|<=) (\S+?)(?: of \{([^{}]+)\})?( .+)?", row.get("target", "")
    )
    if match is None:
        return ""
    place, spec, sign, bound, whole, unit = match.groups()
    words, reaches = COMPARISONS[sign]
    numbers, limit = result(row["result"])["numbers"], float(bound)
    shown = format(limit, spec) if spec else f"{limit:g}"
    if whole:
        total = look_up(numbers, whole)
        shown, limit = f"{limit:.0%} of {total}", limit * total
    reached = reaches(look_up(numbers, place), limit)
    return f"{words} {shown}{unit or ''}, {'reached' if reached else '**missed**'}"


def staleness(name: str) -> str:
    """Why the figures of a result file may no longer hold; empty if they do."""
    record = result(name)
    if (measured := record.get("measured")) is None:
        commit = record["versions"].get("epochzero_commit", "unknown")
        return (
            "measured with uncommitted changes"
            if commit.endswith("-modified")
            else "its commit is no longer in the history"
        )
    if measured["paths"] != measured_paths(name):
        return "it measures other packages now"
    return "" if content_digest(measured["paths"]) == measured["sha256"] else "the code has changed"


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The row of a table."""
    name = row["result"]
    mark = STALE if staleness(name) else ""
    evaluation = EVALUATIONS[row["evaluation"]]
    if "first" in row:
        evaluation += f"; first recorded {measured_figure(row['first'], f'earlier/{name}.first')}"
    source = row.get("others_result", name)
    others = [
        f"{rival} {measured_figure(text, source)}" for rival, text in row.get("others", {}).items()
    ]
    if source != name:
        others.append("(an earlier run)")
    return (
        row["what"],
        filled(row["cases"], name),
        measured_figure(row["strict"], name) + mark,
        measured_figure(row["lenient"], name) + mark if "lenient" in row else "–",
        evaluation,
        target(row),
        ", ".join(others),
    )


def expanded(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The rows, where one with ``each`` becomes a row for each set that has been evaluated."""
    for row in rows:
        if "each" not in row:
            yield row
            continue
        evaluated = {part.partition("_first_look")[0] for part in result(row["result"])["numbers"]}
        for name, ordinal in TABLE[row["each"]].items():
            if {f"{name}_open", f"{name}_held_out"} <= evaluated:
                text = json.dumps(row).replace("SET", name).replace("ORDINAL", ordinal)
                yield json.loads(text)


def page() -> str:
    """``docs/numbers.md``."""
    lines = ["# Numbers", "", TABLE["introduction"]]
    for section in TABLE["section"]:
        lines += [f"## {section['title']}", "", section.get("text", ""), ""]
        lines += markdown(
            ("What", "Cases", "EpochZero, strict", "Lenient", "Evaluation", "Target", "Others"),
            [cells(row) for row in expanded(section["row"])],
        )
        lines += ["", section.get("after", "")]
    before = TABLE["before"]
    lines += [f"## {before['title']}", "", before["text"], ""]
    lines += markdown(
        ("Package", "What", "Cases", "Before", "Now", "State"), list(before_and_now())
    )
    independent = TABLE["independent"]
    lines += ["## Independent evaluation", "", independent["text"], ""]
    lines += markdown(("What", "Cases", "Figure"), [tuple(row) for row in independent["rows"]])
    lines += ["", "## Result files", "", TABLE["result_files"], ""]
    lines += markdown(
        ("Result file", "Date", "Commit", "Python", "Seed", "Machine", "State"),
        [provenance(path.stem) for path in sorted(RESULTS.glob("*.json"))],
    )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def before_and_now() -> Iterator[tuple[str, ...]]:
    """The rows of accuracies that were measured before the packages were reorganized too."""
    what = cases = ""
    for row in (row for part in (*TABLE["section"], TABLE["before"]) for row in part["row"]):
        name, earlier = row["result"], f"earlier/{row['result']}.before"
        what, cases = (
            re.sub("^the same", last, row[key]) for last, key in ((what, "what"), (cases, "cases"))
        )
        if not row.get("accuracy", row["evaluation"] != "cost"):
            continue
        try:
            before, on = filled(row["strict"], earlier), filled(cases, earlier)
        except (FileNotFoundError, KeyError):  # Not measured then.
            continue
        now, on_now = filled(row["strict"], name), filled(cases, name)
        yield (
            TABLE["measured"][name].replace("models/src/", ""),
            what,
            on if on == on_now else f"{on}; now {on_now}",
            f"{before} (`{commit_of(earlier)}`)",
            f"{now}{STALE if staleness(name) else ''} (`{commit_of(name)}`)",
            "not measured again" if result(name)["numbers"] == result(earlier)["numbers"]
            else "other cases" if on != on_now
            else "equal" if now == before
            else f"differs: {row['changed']}" if "changed" in row
            else "differs",
        )  # fmt: skip


def commit_of(name: str) -> str:
    """The commit that a result file was measured at, shortened."""
    return str(result(name)["versions"].get("epochzero_commit", "unknown"))[:8]


def provenance(name: str) -> tuple[str, ...]:
    """Where, when and with what a result file was measured."""
    record = result(name)
    machine = record["machine"]
    reason = staleness(name)
    return (
        f"[{name}](../bench/results/{name}.json)",
        record["date"][:10],
        f"`{commit_of(name)}`",
        record["versions"]["python"],
        str(record["seed"]),
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']:.0f} GB",
        f"stale {STALE}: {reason}" if reason else "current",
    )


def front() -> list[str]:
    """The table of the README.

    Raises:
        ValueError: a row shows cases that were not held out.
    """
    rows = []
    for row in TABLE["front"]:
        if row["evaluation"] not in ("first", "later"):
            raise ValueError(f"the README shows held-out figures only: {row['question']}")
        texts = (measured_figure(row[column], row["result"]) for column in ("figure", "others"))
        rows.append((row["question"], filled(row["cases"], row["result"]), *texts))
    return markdown(("Question", "Held-out cases", "EpochZero", "Others"), rows)


def markdown(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """The lines of a table."""
    ruler = "|" + "---|" * len(header)
    return [f"| {' | '.join(header)} |", ruler, *(f"| {' | '.join(row)} |" for row in rows)]


def with_front_table(readme: str) -> str:
    """The README with its table between the two markers replaced."""
    start, end = "<!-- numbers: written by bench/figures.py -->\n", "<!-- end of numbers -->"
    before, _, rest = readme.partition(start)
    _, _, after = rest.partition(end)
    return before + start + "\n".join(front()) + "\n" + end + after


def main() -> None:
    """Writes the page and the table; with ``--check`` compares them."""
    texts = {PAGE: page(), README: with_front_table(README.read_text(encoding="utf-8"))}
    if sys.argv[1:] != ["--check"]:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        return
    old = [path.name for path, text in texts.items() if path.read_text(encoding="utf-8") != text]
    if old:
        sys.exit(f"{', '.join(old)}: not up to date. Run `make docs`.")


if __name__ == "__main__":
    main()
