"""Watches the training of a job while it runs: sets up its environment, reads its records, concludes.

Watching begins in the job's own process when torch or keras is imported (`epochzero.injected.companions`).
What is seen comes through a file in the attempt's folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from epochzero.errors import InputError, suggestion
from epochzero.injected.companions import Companion, noted
from epochzero.run.process.watcher import EndJob, Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import JobEvent, Record
from epochzero.run.watch.model import CONFIRMED, TOLD
from epochzero.run.watch.record_reader import RecordFileReader

if TYPE_CHECKING:
    from epochzero.run.watch.model import TrainingFinding, WatchResult


RECORDS_FILE = "watch.jsonl"
"""In the attempt's folder."""
EVENT, FOUND_EVENT = "watched", "training_fault"
"""`JobEvent.what` of the verdict at the end, whose JSON form is in its details, and of each new finding."""
WHY = "watch"
"""`Ended.why` of a job that was ended for a fault of its training."""
ENDED_EVENT = f"ended_by_{WHY}"
"""`JobEvent.what` of that; the fault's word is in its details."""
EXIT_CODE = 79
"""Of a job that ``fail_on`` ended: the first that sysexits.h and retries leave."""
_SHARE = 0.02
"""Of one core that conclusions may take."""
_FILE_VARIABLE = "EPOCHZERO_WATCH_FILE"
_VALUES_VARIABLE = "EPOCHZERO_WATCH_VALUES"
_BEGIN = "epochzero.run.watch.child.begin"
WATCH_COMPANIONS = (
    Companion("torch", f"{_BEGIN}:begin_torch"),
    Companion("keras", f"{_BEGIN}:begin_keras"),
)
"""What watches, in the process of the job."""
_IGNORED = "no Python was started, or it ignores PYTHONPATH (-I, -E, -S)"
_NO_TORCH = "neither PyTorch nor Keras was imported"
_NO_TRAINING = "neither a backward pass nor an optimizer step was observed"


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How a training is watched.

    Attributes:
        fail_on: words of faults and symptoms that terminate the job once they are confirmed; ``any`` for all.
        values: paths of layers and parameters whose values are stored over time.
    """

    fail_on: frozenset[str] = frozenset()
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class News:
    """Something that is found while a training runs.

    Attributes:
        finding: what.
        symptoms: of it, that are found at the same moment, or now.
        known: whether it was reported before in this state, and only its symptoms are new.
    """

    finding: TrainingFinding
    symptoms: tuple[TrainingFinding, ...] = ()
    known: bool = False


def check_words(words: Iterable[str]) -> None:
    """Looks whether these are words that ``fail_on`` may name.

    Raises:
        InputError: one is not.
    """
    for word in words:
        if word not in _known_words():
            hint = suggestion(word, _known_words(), "`epochzero explain` lists them")
            raise InputError(f"unknown fault or symptom {word!r}; {hint}")


@cache
def _known_words() -> frozenset[str]:
    from epochzero import taxonomy  # Takes a tenth of the start of a run that names none.

    return frozenset(("any", *taxonomy.faults(), *taxonomy.symptoms()))


def watched_environment(
    environment: Mapping[str, str], folder: Path, options: WatchOptions
) -> dict[str, str]:
    """The environment of a job with `WATCH_COMPANIONS`: where they write, and what the user wants."""
    return {
        **environment,
        _FILE_VARIABLE: str(folder / RECORDS_FILE),
        _VALUES_VARIABLE: ",".join(options.values),
    }


def fails(finding: TrainingFinding, words: Collection[str]) -> bool:
    """Whether a job is terminated for a finding: never for one that is only suspected."""
    return finding.state == CONFIRMED and (finding.word in words or "any" in words)


class TrainingWatcher(Watcher):
    """A watcher that says what is wrong with the training, as soon as it is seen.

    Attributes:
        watched: the verdict so far; None while nothing was seen.
        fault: for which the job was ended first; None for none.
        nothing: why nothing was watched, when the job has ended; empty where something was.
    """

    def __init__(self, options: WatchOptions, on_news: Callable[[News], object]) -> None:
        """Nothing is seen yet.

        Args:
            options: how it is watched.
            on_news: receives what is new, in the watcher's thread.
        """
        self._options = options
        self._on_news = on_news
        self._reported: set[tuple[str, str]] = set()
        self._new = False
        self._next = 0.0
        self.watched: WatchResult | None = None
        self.fault: TrainingFinding | None = None
        self.nothing = ""

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """See `Watcher`."""
        self._path = folder / RECORDS_FILE
        self._clock = clock
        self._following = RecordFileReader(self._path)
        return ()

    def tick(self) -> Iterator[Record]:
        """See `Watcher`: concludes from what is new, as often as the time for it allows.

        Raises:
            EndJob: something is found that is to end the job.
        """
        self._new = self._following.read() or self._new
        now = time.monotonic()
        if self._new and now >= self._next:
            yield from self._conclude()
            self._next = now + (time.monotonic() - now) / _SHARE

    def ended(self) -> Iterator[Record]:
        """See `Watcher`: the verdict.

        Raises:
            EndJob: as of `tick`.
        """
        self._following.read_all()
        try:
            yield from self._conclude()
        finally:
            yield self._verdict()

    def _conclude(self) -> Iterator[Record]:
        """The verdict on what was read; an event for each finding that is new."""
        from epochzero.run.watch.lines.options import with_options
        from epochzero.run.watch.verdict import conclude

        self._new = False
        history = self._following.history()
        if not history.count:
            return
        self.watched = with_options(conclude(history), history.arguments)
        # A confirmed finding is shown however weak its signs are: the job may be terminated for it.
        found = [f for f in self.watched.findings if f.confidence >= TOLD or f.state == CONFIRMED]
        new = [f for f in found if not self._is_reported(f)]
        self._tell_news(self.watched, new)
        self._reported.update((f.word, f.state) for f in new)
        for finding in new:
            yield JobEvent(*self._clock.now(), FOUND_EVENT, finding.text, details=_details(finding))
        ending = next((f for f in new if fails(f, self._options.fail_on)), None)
        if ending is not None:
            self.fault = self.fault or ending
            text = f"the training was terminated because of a fault: {ending.word}"
            raise EndJob(WHY, EXIT_CODE, text, word=ending.word)

    def _is_reported(self, finding: TrainingFinding) -> bool:
        """What was confirmed once is not reported as suspected again."""
        return bool({(finding.word, finding.state), (finding.word, CONFIRMED)} & self._reported)

    def _tell_news(self, watched: WatchResult, new: Sequence[TrainingFinding]) -> None:
        """What is new, and what of it is only a symptom of the root, or of what is suspected."""
        first = watched.root or watched.suspect
        symptoms = tuple(f for f in new if f in watched.symptoms)
        if first is not None and (first in new or symptoms):
            self._on_news(News(first, symptoms, known=first not in new))
        for finding in new:
            if finding is not first and finding not in symptoms:
                self._on_news(News(finding))

    def _verdict(self) -> JobEvent:
        if self.watched is None:
            self.nothing = self._why_nothing()
            return JobEvent(*self._clock.now(), EVENT, f"no training was watched: {self.nothing}")
        from epochzero.run.watch.model import to_dict

        root = self.watched.root
        text = f"watched {self.watched.iterations} iterations: {root.word if root else 'no fault'}"
        watched = json.dumps(to_dict(self.watched))
        return JobEvent(*self._clock.now(), EVENT, text, details={"watched": watched})

    def _why_nothing(self) -> str:
        failed = [record for record in self._following.records if record.get("kind") == "failed"]
        if failed:
            return f"the watcher failed in {failed[0].get('where')}: {failed[0].get('error')}"
        companions = noted(self._path.parent)
        reasons = [text for text in companions.failed if text.startswith(_BEGIN)]
        if reasons:
            return f"the watcher could not start: {reasons[0].partition(' ')[2]}"
        if companions.reached & {"torch", "keras"}:
            return _NO_TRAINING
        return _NO_TORCH if companions.reached else _IGNORED


def _details(finding: TrainingFinding) -> dict[str, str]:
    place = f"{finding.place.path}:{finding.place.line}" if finding.place else ""
    details = {
        "word": finding.word,
        "state": finding.state,
        "since": str(finding.since),
        "layer": finding.layer,
        "place": place,
        "confidence": f"{finding.confidence:.2f}",
        "fix": finding.fix,
    }
    return {name: text for name, text in details.items() if text}
