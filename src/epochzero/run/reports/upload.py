"""Sends attempts to a service (`epochzero serve`): while they run, when they end, or when it is available again.

The service says how much it has, and the rest follows in pieces: logs first, so that it has them when the journal
says that the attempt has ended. A second sender, or the same after a kill, changes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from epochzero.errors import InputError
from epochzero.http_client import NoResponseError, Response, request
from epochzero.run.process.watcher import Watcher
from epochzero.run.records.clock import Clock
from epochzero.run.records.identity import rank_of
from epochzero.run.records.journal import NAME, read_journal
from epochzero.run.records.model import Record, Start
from epochzero.run.records.output import logs_in

_PIECE = 4 << 20
_TIMEOUT_S = 30.0
_EVERY_S = 5.0
_LONGEST_PAUSE_S = 120.0
_FINISH_S = 15.0
_MARK = ".sent"


@dataclass(frozen=True, slots=True)
class Destination:
    """A service.

    Attributes:
        url: its address.
        token: that lets us write; empty where none is needed.
    """

    url: str
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Looks at the address.

        Raises:
            InputError: it is none, or a token would go over the network in clear.
        """
        try:
            parts = urlsplit(self.url)
            known = parts.scheme in ("http", "https") and parts.hostname and not parts.username
        except ValueError:
            known = None
        if not known:
            raise InputError(
                f"{self.url!r} is not a server URL such as https://epochzero.example.org"
            )
        if any(ord(character) <= 32 or ord(character) > 126 for character in self.token):
            raise InputError("the token contains invalid characters; is it the right file?")

    def ask(self, method: str, path: str, data: bytes | None = None) -> Any:
        """The service's answer.

        Raises:
            InputError: it does not do what was asked, or cannot be reached.
        """
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if data is not None:
            headers |= {"Content-Encoding": "zstd", "Content-Type": "application/octet-stream"}
        url = f"{self.url.rstrip('/')}/api/v1{path}"
        try:
            answer = request(method, url, data, headers=headers, timeout=_TIMEOUT_S)
            if answer.succeeded:
                return answer.json()
        except (NoResponseError, ValueError) as error:
            raise InputError(f"{self.url} does not respond: {error}") from error
        raise _ServerRefusedError(self.url, answer.status, _detail(answer))


class _ServerRefusedError(InputError):
    def __init__(self, url: str, status: int, detail: Any) -> None:
        message = detail.get("message", detail) if isinstance(detail, dict) else detail
        super().__init__(f"{url} returned {status}: {message}")
        self.status = status
        size = detail.get("size") if isinstance(detail, dict) else None
        self.size = size if isinstance(size, int) else None


def _detail(answer: Response) -> Any:
    try:
        return answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return answer.reason


def send_attempt(to: Destination, folder: Path) -> bool:
    """Sends what a service does not have of an attempt.

    Args:
        to: the service.
        folder: of the attempt, with its journal and its logs.

    Returns:
        Whether it has all that was there at the beginning.

    Raises:
        InputError: the service does not answer or refuses, or there is no such attempt.
    """
    journal = folder / NAME
    size = journal.stat().st_size if journal.is_file() else 0
    records = (record for _, record in read_journal(journal))
    started = next((record for record in records if isinstance(record, Start)), None)
    if started is None:
        raise InputError(f"{folder} contains no attempt of a job")
    rank = rank_of(folder)
    place = (
        f"/jobs/{started.job}/attempts/{started.attempt}/ranks/{'all' if rank is None else rank}"
    )
    there = to.ask("GET", f"{place}/received")
    for part in (part for parts in logs_in(folder).values() for part in parts):
        with suppress(FileNotFoundError):  # The middle of a long log is dropped while it runs.
            begin = there["logs"].get(part.name, 0)
            _send(to, f"{place}/logs/{part.name}", part, begin, part.stat().st_size)
    _send(to, f"{place}/journal", journal, there["journal"], size)
    (folder / _MARK).write_text(f"{to.url} {size}\n", encoding="utf-8")
    return journal.stat().st_size == size


def _send(to: Destination, place: str, file: Path, begin: int, end: int) -> None:
    """Sends the bytes of a file between two places, as far as the service does not have them."""
    from epochzero import zstd

    with open(file, "rb") as source:
        while begin < end:
            source.seek(begin)
            data = source.read(min(_PIECE, end - begin))
            if not data:
                return
            try:
                answer = to.ask("PUT", f"{place}?offset={begin}", zstd.compress(data))
                begin = int(answer["size"])
            except _ServerRefusedError as refused:
                # Another sender may have been faster; what differs cannot be mended.
                if refused.status != 409 or refused.size is None or refused.size == begin:
                    raise
                if refused.size < begin or refused.size > end:
                    raise
                begin = refused.size


def unsent(runs: Path, to: Destination) -> Iterator[Path]:
    """The folders of attempts that a service does not have whole, the oldest first."""
    found = []
    for journal in runs.glob(f"*/*/{NAME}"):
        with suppress(OSError):
            status = journal.stat()
            mark = journal.with_name(_MARK)
            message = mark.read_text(encoding="utf-8") if mark.is_file() else ""
            if message != f"{to.url} {status.st_size}\n":
                found.append((status.st_mtime, journal.parent))
    yield from (folder for _, folder in sorted(found))


class UploadWatcher(Watcher):
    """A watcher that adds no records: it sends the attempt, in a thread of its own.

    What the service does not take now stays in the folder for ``epochzero send``.
    """

    def __init__(self, to: Destination, folder: Path) -> None:
        self._to = to
        self._folder = folder
        self._over = threading.Event()
        self._all = False
        self._thread = threading.Thread(target=self._send_often, name="sending", daemon=True)
        self.trouble = ""

    def started(self, pid: int, folder: Path, clock: Clock) -> Iterable[Record]:
        """Begins."""
        self._thread.start()
        return ()

    def finish(self) -> bool:
        """Sends the rest; whether the service has all. `trouble` says why it does not."""
        self._over.set()
        if not self._thread.ident:
            self._thread.start()
        self._thread.join(_FINISH_S)
        if self._thread.is_alive():
            self.trouble = self.trouble or f"{self._to.url} did not respond for {_FINISH_S:.0f} s"
        return self._all

    def _send_often(self) -> None:
        pause = _EVERY_S
        while not self._over.wait(pause):
            pause = _EVERY_S if self._sent() else min(2 * pause, _LONGEST_PAUSE_S)
        self._all = self._sent()

    def _sent(self) -> bool:
        try:
            send_attempt(self._to, self._folder)
        except (InputError, OSError) as error:
            self.trouble = str(error)
            return False
        return True
