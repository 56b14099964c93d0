"""What schedulers say of an allocation, in the formats of their documentation; Slurm is in test_allocation."""

from __future__ import annotations

import json
import platform
import ssl
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from epochzero.run.scheduler import allocation_of, kubernetes, lsf, pbs
from epochzero.run.scheduler.commands import seconds


@pytest.mark.parametrize(
    ("stat", "reason", "state"),
    [
        ("RUN", "", "RUNNING"),
        ("RUN", "TERM_OWNER: job killed by owner", "CANCELLED"),
        ("EXIT", "TERM_RUNLIMIT: job killed after reaching LSF run time limit", "TIMEOUT"),
        (
            "EXIT",
            "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit",
            "OUT_OF_MEMORY",
        ),
        ("EXIT", "TERM_PREEMPT: job killed after preemption", "PREEMPTED"),
        ("EXIT", "TERM_BUCKET_KILL: job killed with bkill -b", "CANCELLED"),
        ("PEND", "", "REQUEUED"),
        ("EXIT", "", "FAILED"),
        ("DONE", "", "COMPLETED"),
    ],
)
def test_a_job_of_lsf(stat: str, reason: str, state: str) -> None:
    found = lsf.parse_job(
        {"JOBID": "9", "STAT": stat, "EXIT_REASON": reason, "TIME_LEFT": "1:05 L"}
    )
    assert found.state == state
    assert found.runs is (state == "RUNNING")
    assert found.seconds_left == 3900


def test_bjobs_is_asked_for_the_element_of_an_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"COMMAND": "bjobs", "JOBS": 1, "RECORDS": [{"JOBID": "9", "STAT": "RUN"}]}
    (tmp_path / "bjobs").write_text(
        f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\necho '{json.dumps(answer)}'\n"
    )
    (tmp_path / "bjobs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = allocation_of({"LSB_JOBID": "9", "LSB_JOBINDEX": "3"})
    assert found is not None
    assert found.runs
    assert (tmp_path / "asked").read_text().endswith("time_left 9[3]\n")
    (tmp_path / "bjobs").write_text("#!/bin/sh\necho 'Job <9> is not found' >&2; exit 255\n")
    assert allocation_of({"LSB_JOBID": "9"}) is None


QSTAT = """Job Id: 12.pbs01
    Job_Name = train
    Job_Owner = ida@login1
    resources_used.walltime = {used}
    job_state = {letter}
    queue = gpu
    Resource_List.select = 1:ncpus=16:ngpus=8
    Resource_List.walltime = 01:00:00
    stime = Thu Oct  1 11:00:00 2026
    Variable_List = PBS_O_HOME=/home/ida,PBS_O_LANG=C,
\tPBS_O_WORKDIR=/home/ida/a "b"
    comment = Job run at Thu Oct 01 at 11:00 on (node7:ncpus=16)
"""


@pytest.mark.parametrize(
    ("letter", "used", "minute", "more", "state"),
    [
        ("R", "00:10:00", 10, {}, "RUNNING"),
        ("E", "00:10:00", 10, {}, "CANCELLED"),
        ("E", "00:58:00", 60, {}, "TIMEOUT"),
        ("F", "00:10:00", 10, {"Exit_status": "0"}, "COMPLETED"),
        ("F", "00:10:00", 10, {"Exit_status": "271"}, "CANCELLED"),
        ("C", "00:10:00", 10, {"exit_status": "0"}, "COMPLETED"),
        ("F", "00:10:00", 10, {"Exit_status": "1"}, "FAILED"),
        ("Q", "00:10:00", 10, {}, "REQUEUED"),
    ],
)
def test_a_job_of_pbs(
    letter: str, used: str, minute: int, more: dict[str, str], state: str
) -> None:
    fields = dict(pbs._FIELD.findall(QSTAT.format(letter=letter, used=used)))
    now = datetime(2026, 10, 1, 11, 0) + timedelta(minutes=minute, seconds=1)
    found = pbs.parse_job({**fields, **more}, now)
    assert found is not None
    assert found.state == state
    assert found.runs is (state == "RUNNING")
    assert found.cancelled is (state == "CANCELLED")
    assert found.seconds_left == 3599 - 60 * minute


def test_a_job_of_slurms_qstat_has_no_exit_status() -> None:
    """It reports a job that completed and one that was cancelled alike."""
    assert pbs.parse_job({"job_state": "C", "queue": "low"}, datetime(2026, 10, 1)) is None


def test_qstat_is_asked_in_the_form_that_torque_has_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "qstat").write_text(
        f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\ncat <<'E'\n{QSTAT.format(letter='R', used='00:00:09')}E\n"
    )
    (tmp_path / "qstat").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = allocation_of({"PBS_JOBID": "12[3].pbs01"})
    assert found is not None
    assert found.runs
    assert (tmp_path / "asked").read_text() == "-f 12[3].pbs01\n"


NOW = datetime(2026, 10, 1, 12, 0, tzinfo=UTC)


def condition(kind: str, reason: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": reason}]}}


@pytest.mark.parametrize(
    ("pod", "job", "state"),
    [
        ({"status": {"phase": "Running"}}, {}, "RUNNING"),
        ({"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}}, {}, "CANCELLED"),
        (condition("DisruptionTarget", "PreemptionByScheduler"), {}, "PREEMPTED"),
        (condition("DisruptionTarget", "DeletionByTaintManager"), {}, "NODE_FAIL"),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, {}, "NODE_FAIL"),
        (
            {"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}},
            {},
            "OUT_OF_MEMORY",
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}},
            {"spec": {"activeDeadlineSeconds": 3600}, "status": {"startTime": "2026-10-01T10:59:00Z"}},
            "TIMEOUT",
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}},
            {"spec": {"suspend": True}},
            "REQUEUED",
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}},
            condition("Failed", "DeadlineExceeded"),
            "TIMEOUT",
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}},
            condition("FailureTarget", "BackoffLimitExceeded"),
            "FAILED",
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-10-01T11:59:58Z"}},
            condition("SuccessCriteriaMet", "SuccessPolicy"),
            "COMPLETED",
        ),
    ],
)  # fmt: skip
def test_a_pod_of_a_job(pod: dict[str, Any], job: dict[str, Any], state: str) -> None:
    found = kubernetes.parse_pod(pod, job, NOW)
    assert found.state == state
    assert found.runs is (state == "RUNNING")
    assert found.cancelled is (state == "CANCELLED")


def test_a_pod_without_an_account_knows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "_ACCOUNT", tmp_path)
    assert allocation_of({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) is None


class Api(BaseHTTPRequestHandler):
    """The API, with a pod of an indexed Job that has just been deleted since another pod failed."""

    pod: ClassVar[dict[str, Any]] = {
        "metadata": {
            "name": "train-node-0-1-x7k2p",
            "deletionTimestamp": "2026-10-01T11:59:58Z",
            "ownerReferences": [{"kind": "Job", "name": "train-node-0"}],
        },
        "spec": {"hostname": platform.node()},
        "status": {"phase": "Running", "podIP": "127.0.0.1"},
    }
    answers: ClassVar[dict[str, dict[str, Any]]] = {
        "/api/v1/namespaces/lab/pods?fieldSelector=status.podIP%3D127.0.0.1": {"items": [pod]},
        "/apis/batch/v1/namespaces/lab/jobs/train-node-0": condition(
            "FailureTarget", "BackoffLimitExceeded"
        ),
    }

    def do_GET(self) -> None:
        known = self.headers["Authorization"] == "Bearer secret" and self.path in self.answers
        content = json.dumps(self.answers.get(self.path, {})).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def test_a_pod_of_an_indexed_job_is_found_by_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "api")])
    own = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    begin, end = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end)
        .add_extension(own, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    (tmp_path / "ca.crt").write_bytes(certificate.public_bytes(pem))
    (tmp_path / "token").write_text("secret")
    (tmp_path / "namespace").write_text("lab")
    monkeypatch.setattr(kubernetes, "_ACCOUNT", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ca.crt", tmp_path / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        port = str(server.server_address[1])
        found = allocation_of(
            {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
        )
        server.shutdown()
    assert found is not None
    assert (found.state, found.cancelled) == ("FAILED", False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("00:10:00", 600), ("1-00:00:30", 86_430), ("2:05", 7500), ("none", None), ("7", None)],
)
def test_a_duration(text: str, expected: float | None) -> None:
    assert seconds(text) == expected
