"""Tools that a coding agent can call.

The text of a log or repository may instruct an agent, so each tool reads only files within the allowed
directories, whatever its arguments are.
"""

from __future__ import annotations

import functools
import shlex
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec

from epochzero import taxonomy
from epochzero.agents.answers import Answer, Answers
from epochzero.errors import InputError
from epochzero.file_access import FileAccess, OutsideError, confined, exists

if TYPE_CHECKING:
    from epochzero.store.database import Database


MOST_LINES = 400
MOST_JOBS = 500
MOST_PLACES = 30
OpenStore = Callable[[], AbstractContextManager["Database"]]
_P = ParamSpec("_P")


def _within_roots(
    question: Callable[Concatenate[Tools, _P], Answer],
) -> Callable[Concatenate[Tools, _P], Answer]:
    """Restricts a tool's file access to the allowed directories."""

    @functools.wraps(question)
    def asked(self: Tools, /, *args: _P.args, **kwargs: _P.kwargs) -> Answer:
        try:
            with confined(self.access):
                return question(self, *args, **kwargs)
        except OutsideError as error:
            raise self.refusal(str(error.filename)) from error

    return asked


class Tools:
    """The tools. Each public method is one tool; its docstring is the tool's description.

    Args:
        roots: allowed directories; files outside them are not read.
        store: opens the store of jobs.

    Attributes:
        access: file access restricted to the allowed directories.
    """

    def __init__(self, roots: Sequence[Path], store: OpenStore) -> None:
        self.access = FileAccess.within(roots)
        self._store = store
        self._answers = Answers()

    @_within_roots
    def diagnose(self, path: str = "", text: str = "") -> Answer:
        """Find the root cause of a failed deep-learning job in its logs, separated from its consequences.

        Pass the path of a log file, of a directory with one log per rank, or the text of a log. Start
        here when a training job has failed. Returns the category, the root line and its location, the
        user's own stack frame, whether a retry may succeed (`retry`), and fixes; `evidence` and `cascade`
        are lists that may have more pages. Read the lines around the root with `log_lines`.
        """
        from epochzero.diagnose import Diagnoser, find_facts
        from epochzero.logs.source import Log, find_logs

        if bool(path) == bool(text):
            raise InputError("pass either path or text")
        if text:
            found = Diagnoser().diagnose([Log("text", text=text.encode())])
        else:
            place = self._inside(path)
            found = Diagnoser(look_around=True).diagnose(find_logs([place]), find_facts([place]))
        answer = dict(found.to_dict())
        root = found.root
        if path and (root or found.source):
            file = root.file if root else found.source[0]
            log = path if place.is_file() else str(Path(path, file))
            where = {"around": root.line} if root and root.line else {}
            what = "around the root" if where else "at its end"
            answer["next"] = [_call(f"to read the log {what}", "log_lines", path=log, **where)]
            if where and found.dimension != "infrastructure":
                answer["next"].append(
                    _call("to find the code with the cause", "locate", repository=".", log=path)
                )
        return self._paged(answer, "evidence", "cascade", "stack")

    @_within_roots
    def log_lines(self, path: str, around: int = 0, find: str = "", count: int = 40) -> Answer:
        """Return numbered lines of a log, redacted; compressed logs are supported.

        `around`: return the lines around this line number, such as the line of a diagnosis's root.
        `find`: return the lines that contain this text, ignoring case. Without either: the last lines.
        `count`: maximum number of lines.
        """
        place = self._inside(path)
        if not place.is_file():
            raise InputError(f"{path}: no such file")
        count = max(1, min(count, MOST_LINES))
        lines = enumerate(_lines(place), 1)
        if find:
            wanted = find.lower()
            chosen = list(islice((line for line in lines if wanted in line[1].lower()), count))
        elif around > 0:
            first = max(1, around - count // 2)
            chosen = list(islice(lines, first - 1, first - 1 + count))
        else:
            chosen = list(deque(lines, maxlen=count))
        return self._list([{"line": n, "text": text} for n, text in chosen])

    @_within_roots
    def check(self, command: str, folder: str = ".", target: str = "") -> Answer:
        """Predict failures of a training job from its code, without running it.

        Pass the command line as it would be submitted (`python train.py --lr 0.1`, `torchrun ...`,
        `sbatch job.sh`) and the directory it would be submitted from. `target`: a file that describes the
        platform (`epochzero target capture`), or GPUs by name (`A100`, `8xH100`); the default is this
        machine. Each finding has a location, a severity (only errors are certain to fail) and a fix. Call
        this before a job is submitted and after its code changes.
        """
        from epochzero.check import check

        place = self._inside(folder)
        file = place / target
        wanted = file if target and exists(file) else target or None
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise InputError(f"the command line cannot be parsed: {error}") from error
        checked = check(words, wanted, folder=place)
        answer = checked.to_dict()
        shown = {key: answer[key] for key in ("schema", "findings", "unknowns")}
        if checked.findings:
            same = {"command": command, "folder": folder, "target": target}
            shown["next"] = [_call("when they are fixed", "check", **same)]
        return self._paged(shown, "findings", "unknowns")

    @_within_roots
    def locate(
        self,
        repository: str = ".",
        report: str = "",
        log: str = "",
        revision: str = "HEAD",
        level: Literal["file", "function"] = "file",
        count: int = 10,
    ) -> Answer:
        """Rank the places in a git repository that most likely contain the bug of a report or failed job.

        Pass a bug report (its first line is the title), the path of a log, or both. Returns files or
        functions, most likely first, with reasons and the source lines that fit best, and the probability
        that the bug is outside this code (`extrinsic`: a library, the hardware, the system, the data).
        """
        from epochzero.diagnose import diagnose
        from epochzero.locate import evidence, locate, read_report, with_diagnosis

        if not report and not log:
            raise InputError("pass report, log, or both")
        subject: Any = read_report(report) if report else None
        if log:
            subject = with_diagnosis(subject, diagnose(self._inside(log)))
        ranking = locate(
            subject,
            self._inside(repository),
            revision,
            level=level,
            top=max(1, min(count, MOST_PLACES)),
            explain=True,
            excerpts=True,
        )
        answer = dict(ranking.to_dict())
        answer["items"] = [evidence(item) for item in ranking.items]
        if level == "file" and ranking.items:
            within = {"repository": repository, "report": report, "log": log, "revision": revision}
            answer["next"] = [_call("to find the function", "locate", level="function", **within)]
        return self._paged(answer, "items")

    def explain(self, word: str) -> Answer:
        """Explain a term: a category, root cause, phase, retry value, training fault or symptom,
        the name of a signature, or the ID of a rule.
        """
        from epochzero.check.rules import builtin as rules
        from epochzero.check.rules import others
        from epochzero.diagnose import builtin as signatures

        known: dict[str, Any] = {rule.id: rule for rule in rules()} | dict(others())
        known |= {signature.name: signature for signature in signatures()}
        if word in known:
            return self._answers.answer(_words_of(known[word]))
        try:
            return self._answers.answer(_words_of(taxonomy.find(word)))
        except KeyError:
            near = taxonomy.nearest(word, known)
            hint = f"; did you mean {near}?" if near else ""
            raise InputError(f"{word!r} is not a term of EpochZero's answers{hint}") from None

    def jobs(
        self, state: str = "", category: str = "", fingerprint: str = "", name: str = ""
    ) -> Answer:
        """List the jobs that ran under `epochzero run`, newest first.

        `state`: running, succeeded, failed, cancelled or lost. `fingerprint`: a failure's fingerprint or
        a prefix of it, to find all jobs with the same failure. `name`: may contain the wildcards * and ?.
        """
        from epochzero.store.queries import JobFilter, find_jobs

        wanted = JobFilter(
            state=state or None,
            category=category or None,
            fingerprint=fingerprint or None,
            name=name or None,
            limit=MOST_JOBS,
        )
        with self._store() as database:
            return self._list(find_jobs(database, wanted))

    def job(self, job: str) -> Answer:
        """Return all records of one job, given its ID, a prefix of the ID, its name, or `last`.

        Contains its attempts and ranks, the diagnosis, findings, likely places of the bug, retry
        decisions, and events.
        """
        from epochzero.store.job_details import job_details
        from epochzero.store.queries import find_job

        with self._store() as database:
            details = job_details(database, find_job(database, job))
        answer = dict(details.to_dict())
        lists: dict[str, list[Any]] = {"ranks": [], "findings": [], "ranking": [], "events": []}
        for attempt in answer.pop("attempts"):
            for rank in attempt["ranks"]:
                place = {"attempt": attempt["number"], "rank": rank["rank"]}
                for name in ("findings", "ranking", "events"):
                    lists[name] += [{**place, **value} for value in rank.pop(name)]
                rank.pop("snapshot")
                lists["ranks"].append({**place, **rank})
        return self._paged(answer | lists, *lists)

    def more(self, handle: str) -> Answer:
        """Return the next page of a list in an earlier answer, given the handle in its `more` field."""
        return self._answers.more(handle)

    def refusal(self, path: str) -> InputError:
        """The error for a path outside the allowed directories."""
        allowed = ", ".join(map(str, self.access.roots or ()))
        return InputError(
            f"{path}: outside the allowed directories ({allowed}); `epochzero mcp --root` allows more"
        )

    def _inside(self, path: str) -> Path:
        """Resolves a path, following links; a relative path is relative to the first allowed directory.

        Raises:
            InputError: the path does not exist or is outside the allowed directories.
        """
        try:
            return self.access.resolve((self.access.roots or ())[0] / path)
        except OutsideError:
            raise self.refusal(path) from None
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"{path}: no such path") from error

    def _list(self, items: Sequence[Any]) -> Answer:
        """An answer that is a list."""
        found: Answer = self._paged({"items": items}, "items")["items"]
        return found

    def _paged(self, answer: dict[str, Any], *lists: str) -> Answer:
        """An answer of a bounded size: of these lists, the first pages."""
        pages = {name: [_item(value) for value in answer.pop(name)] for name in lists}
        return self._answers.answer(answer, **pages)


def _call(when: str, tool: str, **arguments: str | int) -> Answer:
    """A call that an agent may want to make next."""
    given = {name: value for name, value in arguments.items() if value != ""}
    return {"when": when, "tool": tool, "arguments": given}


def _item(value: Any) -> Answer:
    """A value with fields, or already a mapping."""
    from dataclasses import asdict, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return dict(value) if isinstance(value, dict) else {"text": str(value)}


def _words_of(term: Any) -> Answer:
    """The texts of a term, a signature or a rule."""
    names = (
        "id", "name", "title", "definition", "meaning", "summary", "consequence", "category", "severity",
        "root_cause", "phase", "retry", "retry_reason", "fixes", "fix", "example", "source",
    )  # fmt: skip
    found = {name: getattr(term, name) for name in names if hasattr(term, name)}
    return {name: value for name, value in found.items() if isinstance(value, (str, tuple, list))}


def _lines(path: Path) -> Iterator[str]:
    """The lines of a log, decompressed; a line of its blocks may be very long."""
    from epochzero.logs.source import find_logs

    rest = b""
    for log in find_logs([path]):
        for block in log.blocks():
            *lines, rest = (rest + block.data).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")
