"""What a coding agent may ask.

A log or a repository can tell an agent what to ask for, so each question reads files only within the roots,
wherever its arguments lead.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec

from epochzero import taxonomy
from epochzero.agents.answers import Answers, bounded
from epochzero.errors import InputError
from epochzero.file_access import FileAccess, OutsideError, confined, exists
from epochzero.redact import redact_all

if TYPE_CHECKING:
    from epochzero.store.database import Database


MOST_LINES = 400
MOST_JOBS = 500
MOST_PLACES = 30
OpenStore = Callable[[], AbstractContextManager["Database"]]
Answer = dict[str, Any]
_P = ParamSpec("_P")


def _within_roots(
    question: Callable[Concatenate[Tools, _P], Answer],
) -> Callable[Concatenate[Tools, _P], Answer]:
    """Lets a question read files in the roots only."""

    @functools.wraps(question)
    def asked(self: Tools, /, *args: _P.args, **kwargs: _P.kwargs) -> Answer:
        try:
            with confined(self.access):
                return question(self, *args, **kwargs)
        except OutsideError as error:
            raise self.refusal(str(error.filename)) from error

    return asked


class Tools:
    """The questions, each a method whose docstring is what the agent's model reads.

    Args:
        roots: directories; only files in them are read.
        store: opens the store of jobs.

    Attributes:
        access: to the files of the roots.
    """

    def __init__(self, roots: Sequence[Path], store: OpenStore) -> None:
        self.access = FileAccess.within(roots)
        self._store = store
        self._answers = Answers()

    @_within_roots
    def diagnose(self, path: str = "", text: str = "") -> dict[str, Any]:
        """Why a deep-learning job failed: the first cause in its logs, not the errors that followed from it.

        Give the path of a log file or of a folder with one log per rank, or the text of a log. Start
        here when a training job has failed. Answers with the category, the root line and where it is,
        the user's own frame, whether another try helps (retry), and fixes; `evidence` and `cascade`
        are lists that may have more. Look at the lines around the root with `log_lines`.
        """
        from epochzero.diagnose import Diagnoser, find_facts
        from epochzero.logs.source import Log, find_logs

        if bool(path) == bool(text):
            raise InputError("give either the path of a log or its text")
        if text:
            found = Diagnoser().diagnose([Log("text", text=text.encode())])
        else:
            place = self._inside(path)
            found = Diagnoser(look_around=True).diagnose(find_logs([place]), find_facts([place]))
        answer = dict(found.to_dict())
        for name in ("evidence", "cascade", "stack"):
            answer[name] = self._answers.page(name, [_item(one) for one in answer.pop(name)])
        return self._answer(answer)

    @_within_roots
    def log_lines(
        self, path: str, around: int = 0, find: str = "", count: int = 40
    ) -> dict[str, Any]:
        """Numbered lines of a log, secrets hidden; compressed logs too.

        `around`: the lines around this line number, as of a diagnosis's root. `find`: the lines that
        hold this text, whatever its case. Neither: the last lines. `count`: how many at most.
        """
        place = self._inside(path)
        if not place.is_file():
            raise InputError(f"{path}: no such file")
        count = max(1, min(count, MOST_LINES))
        lines = enumerate(_lines(place), 1)
        if find:
            wanted = find.lower()
            chosen = list(islice((one for one in lines if wanted in one[1].lower()), count))
        elif around > 0:
            first = max(1, around - count // 2)
            chosen = list(islice(lines, first - 1, first - 1 + count))
        else:
            from collections import deque

            chosen = list(deque(lines, maxlen=count))
        return self._answers.page("lines", [{"line": n, "text": text} for n, text in chosen])

    @_within_roots
    def check(self, command: str, folder: str = ".", target: str = "") -> dict[str, Any]:
        """What will go wrong when a training job runs, read from its code without running it.

        Give the command line as it would be submitted (`python train.py --lr 0.1`, `torchrun ...`,
        `sbatch job.sh`) and the folder where that would be done. `target`: a file that describes the
        platform (`epochzero target capture`), or GPUs by name (`A100`, `8xH100`); by default this
        machine. Each finding has a place, a severity (only an error surely fails), and a fix. Call
        this before a job is submitted, and after its code was changed.
        """
        from epochzero.check import check

        place = self._inside(folder)
        wanted: str | Path | None = target or None
        if target and exists(place / target):
            wanted = place / target
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise InputError(f"the command line cannot be read: {error}") from error
        checked = check(words, wanted, folder=place)
        answer = dict(checked.to_dict())
        answer["findings"] = self._answers.page(
            "findings", [_item(one) for one in answer["findings"]]
        )
        answer["unknowns"] = self._answers.page(
            "unknowns", [_item(one) for one in answer["unknowns"]]
        )
        return self._answer({key: answer[key] for key in ("schema", "findings", "unknowns")})

    @_within_roots
    def locate(
        self,
        repository: str,
        report: str = "",
        log: str = "",
        revision: str = "HEAD",
        level: Literal["file", "function"] = "file",
        count: int = 10,
    ) -> dict[str, Any]:
        """Where in a git repository the bug of a report, or of a failed job's log, most likely is.

        Give a bug report (first line its title), or the path of a log, or both. Answers with files or
        functions, the likeliest first, with the reasons, and with how likely it is that the bug is not
        in this code at all (`extrinsic`: a library, the hardware, the system, the data).
        """
        from epochzero.diagnose import diagnose
        from epochzero.locate import locate, read_report, with_diagnosis

        if not report and not log:
            raise InputError("give a report, the path of a log, or both")
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
        )
        answer = dict(ranking.to_dict())
        answer["items"] = self._answers.page("places", [_item(one) for one in answer["items"]])
        return self._answer(answer)

    def explain(self, word: str) -> dict[str, Any]:
        """What a word of the answers means: a category, root cause, phase, retry word, fault or symptom
        of a training, the name of a signature, or the id of a rule.
        """
        from epochzero.check.rules import builtin as rules
        from epochzero.check.rules import others
        from epochzero.diagnose import builtin as signatures

        known: dict[str, Any] = {rule.id: rule for rule in rules()} | dict(others())
        known |= {signature.name: signature for signature in signatures()}
        if word in known:
            return self._answer(_words_of(known[word]))
        try:
            return self._answer(_words_of(taxonomy.find(word)))
        except KeyError:
            raise InputError(f"no word of the answers is {word!r}") from None

    def jobs(
        self, state: str = "", category: str = "", fingerprint: str = "", name: str = ""
    ) -> dict[str, Any]:
        """The jobs that ran under `epochzero run`, the newest first.

        `state`: running, succeeded, failed, cancelled or lost. `fingerprint`: of a failure, or its
        beginning: who else had it. `name`: may hold * and ?.
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
            return self._answers.page("jobs", [_item(one) for one in find_jobs(database, wanted)])

    def job(self, job: str) -> dict[str, Any]:
        """Everything that is known of one job: its identity, the beginning of it, its name, or `last`.

        Answers with its attempts and ranks, the diagnosis, findings, where the bug may be, what was
        decided about retries, and its events.
        """
        from epochzero.store.queries import find_job, job_details

        with self._store() as database:
            details = job_details(database, find_job(database, job))
        answer = dict(details.to_dict())
        ranks = [
            {"attempt": attempt["number"], **rank}
            for attempt in answer.pop("attempts")
            for rank in attempt["ranks"]
        ]
        for rank in ranks:
            rank.pop("snapshot")
            for name in ("events", "findings", "ranking"):
                rank[name] = self._answers.page(name, [_item(one) for one in rank[name]])
        return self._answer(answer | {"ranks": self._answers.page("ranks", ranks)})

    def more(self, handle: str) -> dict[str, Any]:
        """The next page of a list in an earlier answer, by the `more` that stood beside it."""
        return self._answers.more(handle)

    def refusal(self, path: str) -> InputError:
        """The error for a path that leads outside of the roots."""
        allowed = ", ".join(map(str, self.access.roots or ()))
        return InputError(f"{path}: not within {allowed}; `epochzero mcp --root` allows more")

    def _inside(self, path: str) -> Path:
        """A path with its links followed; a relative one counts from the first root."""
        try:
            return self.access.resolve((self.access.roots or ())[0] / path)
        except OutsideError:
            raise self.refusal(path) from None
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"{path}: no such path") from error

    @staticmethod
    def _answer(answer: Any) -> dict[str, Any]:
        shown: dict[str, Any] = bounded(redact_all(answer))
        return shown


def _item(value: Any) -> dict[str, Any]:
    """A value with fields, or already a mapping."""
    from dataclasses import asdict, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return dict(value) if isinstance(value, dict) else {"text": str(value)}


def _words_of(term: Any) -> dict[str, Any]:
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
