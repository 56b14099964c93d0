"""OpenTelemetry spans of a job, as a collector receives them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra opentelemetry")

PARENT = "4bf92f3577b34da6a3ce929d0e0e4736"
JOB = """
import os, pathlib
print(os.environ["TRACEPARENT"])
marker = pathlib.Path("failed")
if not marker.exists():
    marker.touch()
    raise OSError(11, "Resource temporarily unavailable", "/dev/x")
"""


class Collector:
    """An OTLP receiver."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def variables(self) -> dict[str, str]:
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server.server_port}",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        }


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever)
    thread.start()
    yield collector
    collector.server.shutdown()
    thread.join()
    collector.server.server_close()


def test_a_job_and_its_attempts_are_spans(
    run: Callable[..., subprocess.CompletedProcess[bytes]],
    collector: Collector,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in collector.variables.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("TRACEPARENT", f"00-{PARENT}-00f067aa0ba902b7-01")
    (tmp_path / "train.py").write_text(JOB)
    (tmp_path / "once.toml").write_text(
        'title = "Once."\n[[rules]]\ntitle = "all"\nretries = 1\nreason = "So."\n'
    )
    command = ("--policy", "once.toml", "--retries", "auto", "--", sys.executable, "train.py")

    done = run("--opentelemetry", *command, cwd=tmp_path)

    assert done.returncode == 0, done.stderr.decode()
    first, second, job = collector.spans
    assert (first.name, second.name, job.name) == ("attempt 1", "attempt 2", "job train.py")
    assert {span.trace_id.hex() for span in collector.spans} == {PARENT}
    assert first.parent_span_id == second.parent_span_id == job.span_id
    contexts = done.stdout.decode().split()
    assert contexts == [f"00-{PARENT}-{span.span_id.hex()}-01" for span in (first, second)]
    values = {one.key: one.value for one in first.attributes}
    assert values["process.exit.code"].int_value == 1
    assert values["epochzero.retry"].string_value == "retry"
    assert values["error.type"].string_value
    assert (first.status.code, second.status.code, job.status.code) == (2, 0, 0)


def test_a_collector_that_does_not_answer_does_not_change_the_job(
    run: Callable[..., subprocess.CompletedProcess[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")

    done = run("--opentelemetry", "--", sys.executable, "-c", "print(1)")

    assert (done.returncode, done.stdout) == (0, b"1\n")
    assert done.stderr == b"epochzero: OpenTelemetry spans could not be exported\n"
