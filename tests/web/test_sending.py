"""What jobs send: pieces, repeated and out of order, compressed, and logs without a journal."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import stat
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from httpx import Response
from hypothesis import given
from hypothesis import strategies as st

from epochzero import zstd
from epochzero.redact import redact_log
from epochzero.store import recorder
from epochzero.store.job_details import read_log
from epochzero.store.logs import Parts, parts_in
from epochzero.store.retention import prune
from epochzero.web import ingest, intake, log_redaction
from epochzero.web import spool as spool_module
from epochzero.web.app import create_app
from epochzero.web.log_diagnosis import About
from epochzero.web.log_redaction import HELD_MOST, Unfinished, redact_piece
from epochzero.web.settings import Settings
from epochzero.web.spool import Spool, appending
from tests.store.jobs import Runs, whole
from tests.waiting import wait_until
from tests.web.conftest import Served

LOG = b"step 1\npassword=hunter2x\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nKeyError: 'lr'\n"
ATTEMPT = "/api/v1/jobs/job1/attempts/1/ranks/all"


def send(served: Served, who: dict[str, str], journal: Path, log: bytes = LOG) -> None:
    """Sends an attempt in pieces of few bytes."""
    for name, data in (("logs/output.log", log), ("journal", journal.read_bytes())):
        for offset in range(0, len(data), 700):
            piece = data[offset : offset + 700]
            answer = served.client.put(
                f"{ATTEMPT}/{name}?offset={offset}", content=piece, headers=who
            )
            assert answer.json().get("size", -1) >= offset + len(piece), answer.text
    served.settle()


def test_an_attempt_that_was_sent_in_pieces_is_there_whole(served: Served, tmp_path: Path) -> None:
    who = served.token()
    send(served, who, Runs(tmp_path / "runs").write(whole(), log=LOG))
    page = served.client.get("/api/v1/jobs", headers=who).json()
    assert [(job["id"], job["state"]) for job in page["jobs"]] == [("red.job1", "failed")]
    job = served.client.get("/api/v1/jobs/job1", headers=who).json()
    assert job["attempts"][0]["ranks"][0]["diagnosis"]["category"] == "key_not_found"
    log = served.client.get("/api/v1/jobs/job1/logs/output", headers=who)
    assert log.content == LOG.replace(b"hunter2x", b"[redacted]")
    some = served.client.get("/api/v1/jobs/job1/logs/output?first=3&lines=2", headers=who)
    assert some.content == b"".join(LOG.splitlines(keepends=True)[2:4])


def test_a_repeated_piece_changes_nothing(served: Served, tmp_path: Path) -> None:
    who = served.token()
    journal = Runs(tmp_path / "runs").write(whole(), log=LOG)
    send(served, who, journal)
    before = served.client.get("/api/v1/jobs/job1", headers=who).json()
    send(served, who, journal)
    assert served.client.get("/api/v1/jobs/job1", headers=who).json() == before


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_compressed_piece_is_kept_without_its_compression(served: Served, encoding: str) -> None:
    compress = {"gzip": gzip.compress, "zstd": zstd.compress}[encoding]
    headers = served.token() | {"Content-Encoding": encoding}
    answer = served.client.put(
        f"{ATTEMPT}/logs/output.log", content=compress(LOG) + compress(LOG), headers=headers
    )
    assert answer.json() == {"size": 2 * len(LOG)}
    cut = compress(LOG)[:-5]
    answer = served.client.put(
        f"{ATTEMPT}/logs/output.log?offset={2 * len(LOG)}", content=cut, headers=headers
    )
    assert answer.status_code == 422
    sizes = served.client.get(f"{ATTEMPT}/received", headers=headers).json()
    assert sizes == {"journal": 0, "logs": {"output.log": 2 * len(LOG)}}


def test_a_piece_after_a_gap_is_refused_and_the_sender_told_where_to_go_on(served: Served) -> None:
    who = served.token()
    served.client.put(f"{ATTEMPT}/logs/output.log", content=b"abc", headers=who)
    gap = served.client.put(f"{ATTEMPT}/logs/output.log?offset=9", content=b"x", headers=who)
    other = served.client.put(f"{ATTEMPT}/logs/output.log?offset=1", content=b"xyz", headers=who)
    for answer in (gap, other):
        assert answer.status_code == 409
        assert answer.json()["detail"]["size"] == 3


def test_a_log_without_a_journal_is_diagnosed_and_kept_once(served: Served) -> None:
    who = served.token()
    for new in (True, False):
        answer = served.client.post(
            "/api/v1/diagnose-and-store?job=a&name=train&gpus=8&exit_code=1"
            "&partition=a100&image=torch:2.9&commit=abc1234",
            content=LOG,
            headers=who,
        ).json()
        assert answer["new"] is new
        assert answer["category"] == "key_not_found"
    job = served.client.get(f"/api/v1/jobs/{answer['job']}", headers=who).json()
    assert job["summary"]["name"] == "train"
    page = served.client.get(f"/jobs/{answer['job']}", headers=who).text
    environment = "partition <code>a100</code>, image <code>torch:2.9</code>, commit <code>abc1234"
    assert f"<dt>Environment</dt><dd>{environment}" in page
    for search in ("partition:a100 image:torch:2.9", "KeyError"):
        found = served.client.get("/jobs", params={"q": search, "format": "json"}, headers=who)
        assert [one["name"] for one in found.json()] == ["train"]
    issue = served.client.get(f"/failures/{answer['fingerprint']}?format=json", headers=who)
    assert issue.json()["first_commit"] == "abc1234"
    log = served.client.get(f"/api/v1/jobs/{answer['job']}/logs/output", headers=who)
    assert b"hunter2x" not in log.content


def test_runs_with_the_same_text_are_jobs_of_their_own(served: Served) -> None:
    who = served.token()
    path = "/api/v1/diagnose-and-store"
    alone = [
        served.client.post(f"{path}?name=train&exit_code=1", content=LOG, headers=who).json()
        for _ in range(2)
    ]
    line = json.dumps({"log": LOG.decode(), "exit_code": 1})
    many = served.client.post(f"{path}/bulk", content=f"{line}\n{line}", headers=who).json()
    assert [one["new"] for one in (*alone, *many)] == [True] * 4
    assert len({one["job"] for one in (*alone, *many)}) == 4
    assert len(served.client.get("/api/v1/jobs", headers=who).json()["jobs"]) == 4


@pytest.mark.parametrize("pruned", [False, True])
def test_the_same_job_with_another_log_is_a_conflict(served: Served, pruned: bool) -> None:
    who = served.token()
    path = "/api/v1/diagnose-and-store"

    def post(log: bytes, words: str = "job=a") -> Response:
        return served.client.post(f"{path}?{words}", content=log, headers=who)

    assert post(LOG).json()["new"] is True
    if pruned:
        prune(served.service.database, before=time.time() + 60)
    assert post(LOG).json()["new"] is False
    other = post(LOG + b"step 2\n")
    assert other.status_code == 409
    assert "job a, attempt 1: a different log" in other.json()["detail"]
    assert post(LOG + b"step 2\n", "job=a&attempt=2").json()["new"] is True
    lines = [
        json.dumps({"log": log, "job": job}) for log, job in (("x", "b"), ("y", "c"), ("z", "b"))
    ]
    many = served.client.post(f"{path}/bulk", content="\n".join(lines), headers=who)
    assert many.status_code == 409
    assert "job b, attempt 1" in many.json()["detail"]
    assert [job["id"] for job in served.client.get("/api/v1/jobs", headers=who).json()["jobs"]] == [
        "red.a"
    ]


def test_many_logs_at_once_are_kept_all_or_none(served: Served) -> None:
    who = served.token()
    lines = [json.dumps({"log": LOG.decode(), "job": f"j{n}", "exit_code": 1}) for n in range(20)]
    path = "/api/v1/diagnose-and-store/bulk"
    wrong = served.client.post(path, content="\n".join([*lines, "{}"]), headers=who)
    assert wrong.status_code == 422
    assert "line 21: log" in wrong.json()["detail"]
    assert served.client.get("/api/v1/jobs", headers=who).json()["jobs"] == []
    kept = served.client.post(path, content="\n".join(lines), headers=who).json()
    assert [one["category"] for one in kept] == ["key_not_found"] * 20
    assert len(served.client.get("/api/v1/jobs", headers=who).json()["jobs"]) == 20


def test_a_large_log_is_not_held_in_memory(served: Served) -> None:
    service = served.service
    line = (
        b"2026-11-21 10:00:00 step %d loss 0.5 and what else a long line of a log has to say\n" * 10
    )
    with service.spool.passing() as log:
        for number in range(36_000):
            log.write(line % (*range(number, number + 10),))
        size = log.tell()
        log.write(LOG)
        service.diagnosing.ending("", About(), io.BytesIO(LOG))  # A worker is running.
        tracemalloc.start()
        job = service.diagnosing.ending("", About(job="large", exit_code=1), log)
        service.keeping.keep([job.ending])
        job.close()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert job.found.category == "key_not_found"
    assert size > 24e6
    assert peak < 0.8 * size
    parts = read_log(service.database, "large", attempt=None, name="output")
    assert sum(map(len, parts)) == size + len(LOG) + len(b"[redacted]") - len(b"hunter2x")


SECRET = b"hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"


def _contents(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_what_the_store_has_is_gone_from_the_spool(served: Served, tmp_path: Path) -> None:
    """Its sizes stay, so that a sender that was told nothing finds that all was received."""
    who = served.token("red", "writer")
    log = b"token " + SECRET + b"\n" + LOG
    journal = Runs(tmp_path / "runs").write(whole(), log=log)
    send(served, who, journal, log)
    spool = served.service.settings.folder
    assert SECRET not in _contents(spool)
    assert served.service.spool.used("red") == 0
    answer = served.client.get(f"{ATTEMPT}/received", headers=who).json()
    assert answer["logs"] == {"output.log": len(log)}
    again = served.client.put(f"{ATTEMPT}/logs/output.log", content=log, headers=who)
    assert (again.status_code, again.json()) == (200, {"size": len(log)})
    stored = served.client.get("/api/v1/jobs/job1/logs/output", headers=who)
    assert SECRET not in stored.content
    assert b"KeyError: 'lr'" in stored.content


def test_a_piece_that_differs_from_what_was_received_is_refused(served: Served) -> None:
    who = served.token()
    path = f"{ATTEMPT}/logs/output.log"
    served.client.put(path, content=b"step 1\n", headers=who)
    served.client.put(f"{ATTEMPT}/journal", content=b"", headers=who)
    served.service.spool.release(served.service.spool.attempt("red", "job1", 1, None), 0)
    assert served.client.put(path, content=b"step 1\nstep 2\n", headers=who).json() == {"size": 14}
    other = served.client.put(f"{path}?offset=7", content=b"step 3\n", headers=who)
    assert other.status_code == 409


def test_records_that_arrive_while_a_journal_is_released_are_not_lost(
    served: Served, tmp_path: Path
) -> None:
    who = served.token()
    data = Runs(tmp_path / "runs").write(whole(), log=LOG).read_bytes()
    end = data.index(b"\n", data.index(b'"exit_code"')) + 1
    spool = served.service.spool
    place = f"{ATTEMPT}/journal"
    assert served.client.put(place, content=data[:end], headers=who).is_success
    served.settle()
    assert served.client.put(f"{place}?offset={end}", content=data[end:], headers=who).is_success
    spool.release(spool.attempt("red", "job1", 1, None), end)
    served.settle()
    job = served.client.get("/api/v1/jobs/job1", headers=who).json()
    assert job["attempts"][0]["ranks"][0]["diagnosis"]["category"] == "key_not_found"


def test_a_process_that_is_being_started_does_not_keep_a_file_locked(tmp_path: Path) -> None:
    """Until it executes its program, it has copies of all open files."""
    reading, writing = os.pipe()
    with appending(tmp_path / "output.log", 0, most=100) as piece:
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        piece.write(b"step 1\n")
        piece.sync()
    try:
        with appending(tmp_path / "output.log", 7, most=100) as piece:
            assert piece.begun == 7
    finally:
        os.close(writing)
        os.waitpid(child, 0)
        os.close(reading)


def test_a_part_waits_until_its_file_was_released(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "_PAUSES_S", [0.01] * 60_000)
    who = served.token()
    path = served.service.spool.attempt("red", "job1", 1, None) / "output.log"
    with ThreadPoolExecutor(1) as pool:
        with appending(path, 0, most=100):
            place = f"{ATTEMPT}/logs/output.log"
            answer = pool.submit(
                lambda: served.client.put(place, content=b"step 1\n", headers=who).json()
            )
            time.sleep(0.1)
        assert answer.result() == {"size": 7}


def test_a_journal_whose_import_failed_unexpectedly_is_imported_later(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [MemoryError("once")]

    def fails_once(folder: Path, text: Callable[[bytes], bytes]) -> Parts:
        if errors:
            raise errors.pop()
        return parts_in(folder, text)

    monkeypatch.setattr(recorder, "parts_in", fails_once)
    monkeypatch.setattr(intake, "_TIDY_EVERY_S", 0.0)
    who = served.token()
    journal = Runs(tmp_path / "runs").write(whole(), log=LOG)
    assert served.client.put(f"{ATTEMPT}/journal", content=journal.read_bytes(), headers=who)
    wait_until(lambda: served.client.get("/api/v1/jobs", headers=who).json()["jobs"])


def test_only_the_account_of_the_service_can_read_what_was_received(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    folder.mkdir(mode=0o755)
    create_app(Settings(f"sqlite:///{tmp_path}/store.db", folder))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


KEY = b"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75\nq1x2y3z4Secret\n-----END RSA PRIVATE KEY-----\n"


def test_a_log_of_a_running_job_lies_redacted_in_the_spool(served: Served, tmp_path: Path) -> None:
    """Wherever the requests cut it; the sender still counts the bytes that it wrote."""
    who = served.token("red", "writer")
    log = b"token " + SECRET + b"\n" + KEY + LOG + b"then " + SECRET
    spool = served.service.settings.folder
    for offset in range(0, len(log), 7):
        answer = served.client.put(
            f"{ATTEMPT}/logs/output.log?offset={offset}",
            content=log[offset : offset + 7],
            headers=who,
        )
        assert answer.json() == {"size": min(len(log), offset + 7)}
    stored = (served.service.spool.attempt("red", "job1", 1, None) / "output.log").read_bytes()
    assert stored == redact_log(log)
    assert served.client.put(
        f"{ATTEMPT}/logs/output.log?offset={len(log)}", content=b"\n", headers=who
    ).is_success
    for secret in (SECRET, b"q1x2y3z4Secret", b"hunter2x"):
        assert secret not in _contents(spool)
    again = served.client.put(f"{ATTEMPT}/logs/output.log?offset=30", content=log[30:], headers=who)
    assert again.json() == {"size": len(log) + 1}
    other = log.replace(b"train.py", b"other.py") + b"\n"
    for offset in (0, 30):
        answer = served.client.put(
            f"{ATTEMPT}/logs/output.log?offset={offset}", content=other[offset:], headers=who
        )
        assert answer.status_code == 409


@pytest.mark.parametrize("moment", ["_record", "_end_with"])
def test_what_a_killed_server_had_not_acknowledged_is_neither_lost_nor_twice(
    tmp_path: Path, moment: str
) -> None:
    path = tmp_path / "_" / "runs" / "job1" / "1" / "output.log"
    first, second = b"one\npassword=hun", b"ter2x\ntwo\n"

    def put(offset: int, data: bytes) -> int:
        with appending(path, offset, most=1 << 20) as piece:
            piece.write(data)
            piece.sync()
        return piece.size

    put(0, first)
    if (child := os.fork()) == 0:
        setattr(spool_module, moment, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        put(len(first), second)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    spool = Spool(tmp_path)
    assert spool.sizes(path.parent) == {"output.log": len(first)}
    spool.recover("")
    assert path.read_bytes() == first
    assert put(len(first), second) == len(first + second)
    assert path.read_bytes() == b"one\npassword=[redacted]\ntwo\n"
    assert b"hunter" not in _contents(tmp_path)


TEXTS = st.sampled_from(
    [
        b" " + SECRET + b" ",
        b" password=hunter2x ",
        b" password\n = hunter2x ",
        b"step 1 loss 0.5",
        b"\n",
        b"\xff\0",
        KEY,
    ]
)


@given(st.lists(TEXTS, max_size=30).map(b"".join), st.integers(1, 200))
def test_a_log_is_redacted_as_if_it_had_come_whole(log: bytes, size: int) -> None:
    state, redacted = Unfinished(), b""
    for begin in range(0, len(log), size):
        some, state = redact_piece(state, log[begin : begin + size])
        redacted += some
    for secret in (SECRET, b"hunter2x", b"q1x2y3z4Secret"):
        assert secret not in redacted
    if b"password\n" not in log:
        assert b"".join(map(redact_log, _parts(log))) == redacted + redact_log(state.held)


def _parts(log: bytes) -> list[bytes]:
    """Lines, and keys with the lines that they begin and end in."""
    return re.findall(rb"(?s)[^\n]*?-----BEGIN.*?-----END[^\n]*\n?|[^\n]*\n|[^\n]+$", log)


@pytest.mark.parametrize("space", [b" ", b""])
def test_a_line_of_any_length_is_redacted_and_little_of_it_held(space: bytes) -> None:
    log = (b"50%|#####" + space) * 40_000 + b" " + SECRET + b" " + (b"60%|" + space) * 40_000
    for size in (1000, 100_000):
        state, redacted = Unfinished(), b""
        for begin in range(0, len(log), size):
            some, state = redact_piece(state, log[begin : begin + size])
            redacted += some
            assert len(state.held) <= HELD_MOST
        assert redacted + redact_log(state.held) == log.replace(SECRET, b"[redacted]")


def test_of_a_secret_longer_than_what_is_held_nothing_is_stored() -> None:
    log = b"start\nrun --token " + b"s3cretX" * 20_000 + b"\nend\n"
    state, redacted = Unfinished(), b""
    for begin in range(0, len(log), 5000):
        some, state = redact_piece(state, log[begin : begin + 5000])
        redacted += some
    assert redacted == b"start\nrun --token [redacted]\nend\n"


def test_a_log_of_names_alone_takes_a_bounded_number_of_redactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def counted(data: bytes) -> bytes:
        asked.append(len(data))
        return redact_log(data)

    monkeypatch.setattr(log_redaction, "redact_log", counted)
    redact_piece(Unfinished(), b"password\n" * 20_000)
    assert len(asked) < 200
