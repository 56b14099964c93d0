"""Client of the team server.

>>> client = Client("https://epochzero.example.org", token)          # doctest: +SKIP
>>> for job in client.jobs(state="failed"): print(job.id, job.category)  # doctest: +SKIP

`epochzero.run.reports.upload` sends jobs, and requires only Python's standard library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from pydantic import TypeAdapter

from epochzero.errors import InputError
from epochzero.http_client import NoResponseError, Response, request
from epochzero.store.failure_notes import Known
from epochzero.store.overview import FingerprintCount, Overview
from epochzero.store.queries import JobPage, JobSummary

_TIMEOUT_S = 60.0
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class UploadedLog:
    """A diagnosed and stored log; ``new`` is false if the server already had it."""

    job: str
    new: bool
    outcome: str
    category: str
    fingerprint: str
    title: str
    diagnosis: Mapping[str, Any] | None = None


class Client:
    """Client of a team server.

    Args:
        url: of the server.
        token: of a team; empty if the server requires none.
    """

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def jobs(self, *, sort: str = "newest", **wanted: str | float) -> Iterator[JobSummary]:
        """The jobs that match a filter, fetched page by page while iterating.

        Args:
            sort: newest, oldest or costliest.
            wanted: fields of `epochzero.store.queries.JobFilter`.

        Raises:
            InputError: the server rejects the request or does not respond.
        """
        after = ""
        while True:
            query = {**wanted, "sort": sort, "after": after}
            page = self._ask("GET", "/jobs", JobPage, params=query)
            yield from page.jobs
            if not (after := page.after):
                return

    def job(self, identity: str) -> Mapping[str, Any]:
        """All data about a job, in the JSON form ``epochzero.job/1``."""
        return self._ask("GET", f"/jobs/{identity}", dict[str, Any])

    def delete(self, identity: str) -> None:
        """Deletes a finished job with its logs and all its records; requires an admin token."""
        self._asked("DELETE", f"/jobs/{identity}")

    def log(
        self, identity: str, name: str = "output", *, first: int = 1, lines: int | None = None
    ) -> bytes:
        """A log, or some of its lines."""
        query = {"first": first} | ({} if lines is None else {"lines": lines})
        return self._asked("GET", f"/jobs/{identity}/logs/{name}", params=query).content

    def fingerprints(self, *, since: float = 0.0) -> list[FingerprintCount]:
        """The failures by fingerprint, the most expensive first."""
        return self._ask("GET", "/fingerprints", list[FingerprintCount], params={"since": since})

    def known(self, fingerprint: str) -> Known:
        """The team's records about a fingerprint."""
        return self._ask("GET", f"/fingerprints/{fingerprint}", Known)

    def overview(self, *, since: float = 0.0) -> Overview:
        """The totals of the team's jobs."""
        return self._ask("GET", "/overview", Overview, params={"since": since})

    def diagnose_and_store(self, log: bytes, **about: str | float) -> UploadedLog:
        """Diagnoses and stores a log on the server.

        Args:
            log: its bytes.
            about: fields of `epochzero.web.log_diagnosis.About`, such as ``name`` and ``exit_code``.
        """
        return self._ask("POST", "/diagnose-and-store", UploadedLog, params=about, data=log)

    def diagnose_and_store_many(self, lines: Iterable[str]) -> list[UploadedLog]:
        """Diagnoses and stores many small logs: JSON lines with ``log`` and the fields of `About`."""
        path = "/diagnose-and-store/bulk"
        return self._ask("POST", path, list[UploadedLog], data="\n".join(lines).encode())

    def _ask(self, method: str, path: str, kind: type[_Answer], **values: Any) -> _Answer:
        return TypeAdapter(kind).validate_json(self._asked(method, path, **values).content)

    def _asked(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        data: bytes | None = None,
    ) -> Response:
        query = f"?{urlencode(params)}" if params else ""
        url = f"{self._url}/api/v1{path}{query}"
        try:
            answer = request(method, url, data, headers=self._headers, timeout=_TIMEOUT_S)
        except NoResponseError as error:
            raise InputError(f"{self._url} does not respond: {error}") from error
        if not answer.succeeded:
            text = answer.content.decode("utf-8", "replace")
            raise InputError(f"{self._url} returned {answer.status}: {text}")
        return answer
