"""A webhook is told how a job ended, over a real connection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from epochzero.errors import InputError
from epochzero.run.reports.end_summary import Notice, notice_of
from epochzero.run.reports.notifications import Webhook
from tests.run.conftest import Kept, command
from tests.run.reports.test_end_summary import DIAGNOSIS, ENDED, STARTED
from tests.waiting import PATIENCE_S

NOTICE = notice_of(STARTED, ENDED, DIAGNOSIS)


class Server(ThreadingHTTPServer):
    """Answers with the codes that it is given, in order, the last again and again."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = [200]
        self.told: list[Any] = []
        self.url = f"http://127.0.0.1:{self.server_port}/hook"


class Handler(BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    server: Server

    def do_POST(self) -> None:
        """Keeps the body."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.told.append(json.loads(body))
        answers = self.server.answers
        code = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(code)
        if code == 302:
            self.send_header("Location", self.server.url)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_any_webhook_reads_the_json_form(server: Server) -> None:
    Webhook(server.url).notify(NOTICE)
    assert server.told == [NOTICE.to_dict()]
    assert server.told[0]["category"] == "key_not_found"


def test_a_server_that_fails_is_tried_once_more(server: Server) -> None:
    server.answers = [503, 200]
    Webhook(server.url).notify(NOTICE)
    assert len(server.told) == 2


@pytest.mark.parametrize(("answer", "tries"), [(404, 1), (302, 1), (500, 2)])
def test_a_refusal_is_told_without_the_address(server: Server, answer: int, tries: int) -> None:
    server.answers = [answer]
    with pytest.raises(InputError) as told:
        Webhook(server.url).notify(NOTICE)
    assert str(told.value) == f"127.0.0.1 was not notified: it returned {answer}"
    assert len(server.told) == tries


def test_a_certificate_that_nobody_vouches_for_is_refused(server: Server) -> None:
    with pytest.raises(InputError, match="not notified"):
        Webhook(server.url.replace("http:", "https:")).notify(NOTICE)
    assert not server.told


@pytest.mark.parametrize(
    "url",
    ["ftp://x/y", "file:///etc/passwd", "https://", "https://a b/c", "https://x:port/",
     "https://user:pw@x/y", "https://[::1", "https://x/\ny", "nonsense", "on/off", ""],
)  # fmt: skip
def test_what_is_no_address_of_a_webhook_is_refused_at_once(url: str) -> None:
    with pytest.raises(InputError, match="a webhook is a URL"):
        Webhook(url)


def _forms(url: str) -> dict[str, Any]:
    return dict(Webhook(url)._form(NOTICE))


@pytest.mark.parametrize("url", ["hooks.example.org/x", "localhost/x", "node7:8065/x"])
def test_an_address_needs_no_scheme(url: str) -> None:
    assert Webhook(url).host == url.partition("/")[0].partition(":")[0]


def test_each_host_is_told_in_its_form() -> None:
    assert _forms("hooks.slack.com/services/T0/B0/x")["blocks"][0]["type"] == "header"
    assert _forms("https://chat.example.org/hooks/" + "a1" * 13)["text"].startswith("```\nresnet")
    assert _forms("https://discord.com/api/webhooks/1/x")["allowed_mentions"] == {"parse": []}
    card = _forms("https://a.webhook.office.com/webhookb2/x")["attachments"][0]["content"]
    assert card["body"][0]["inlines"][0]["text"] == NOTICE.lines()[0]
    assert _forms("https://example.org/slack.com/")["schema"] == "epochzero.notice/1"
    assert _forms("https://hooks.slack.com.evil.org/x")["schema"] == "epochzero.notice/1"


def _slack(notice: Notice) -> tuple[str, str, list[dict[str, Any]]]:
    """The text of notifications, the header and the elements of rich text, within the limits that Slack publishes."""
    message = Webhook("hooks.slack.com/x")._form(notice)
    header, body = message["blocks"]
    assert header["text"]["type"] == "plain_text"
    assert 0 < len(header["text"]["text"]) <= 150
    (section,) = body["elements"]
    texts = [element["text"] for element in section["elements"]]
    assert all(texts)
    assert sum(map(len, texts)) <= 3000
    return message["text"], header["text"]["text"], section["elements"]


def test_slack_shows_job_cause_line_fix_and_link() -> None:
    fallback, header, elements = _slack(replace(NOTICE, link="https://epochzero.example.org/f/1"))
    assert header == "resnet failed on node7 after 2 h 30 min (exit code 1)"
    assert fallback == f"{header}\nKey Not Found (key_not_found)"
    assert "".join(element["text"] for element in elements).splitlines() == [
        "why: Key Not Found (key_not_found)",
        "line: rank 1: KeyError: 'lr'",
        "code: train.py:12",
        "fix: Add 'lr' to the configuration.",
        "retry: The same lines run again.",
        "cost: 8 GPUs, 20.0 GPU hours",
        "Open",
    ]
    assert [element["text"] for element in elements if element.get("style", {}).get("code")] == [
        "rank 1: KeyError: 'lr'",
        "train.py:12",
    ]
    assert elements[-1]["url"] == "https://epochzero.example.org/f/1"


def test_a_path_of_a_server_that_does_not_know_its_address_is_shown() -> None:
    notice = replace(NOTICE, link="/failures/1")
    assert _slack(notice)[2][-2]["text"] == "/failures/1"
    card = Webhook("https://a.webhook.office.com/x")._form(notice)["attachments"][0]["content"]
    assert card["body"][-1]["inlines"][1]["text"] == "/failures/1"
    assert "actions" not in card


def test_the_longest_message_is_within_the_limits_of_slack() -> None:
    long = {"title": "t" * 9999, "fixes": ["<&>" * 9999], "retry_reason": "r" * 9999}
    frame = {"file": "/d" * 9999, "line": 1}
    root = {"text": "<!here> " * 9999, "rank": None}
    diagnosis = DIAGNOSIS | long | {"user_frame": frame, "root": root}
    _slack(notice_of(replace(STARTED, name="<&>" * 999), ENDED, diagnosis))


def test_a_log_mentions_nobody() -> None:
    text = "<!channel> ``` @all <https://evil.example|Open> & *bold*"
    notice = notice_of(replace(STARTED, name=text), ENDED, DIAGNOSIS | {"root": {"text": text}})
    fallback, header, elements = _slack(notice)
    for escaped in (fallback, header):
        assert "&lt;!channel&gt;" in escaped
        assert "&amp;" in escaped
        assert not set(escaped) & set("<>")
    # In rich text, only the type of an element makes it a link or a mention.
    assert {element["type"] for element in elements} == {"text"}
    message = Webhook("https://chat.example.org/hooks/" + "a1" * 13)._form(notice)["text"]
    assert message.count("```") == 2


def _run(*words: str) -> int:
    """A run's exit code; a busy machine takes its time to diagnose and to check."""
    home = Path(os.environ["EPOCHZERO_HOME"]).parent
    return subprocess.run(
        command(*words), capture_output=True, timeout=PATIENCE_S, cwd=home
    ).returncode


def test_a_run_tells_of_its_failure_and_not_of_success(kept: Kept, server: Server) -> None:
    assert _run("--notify", server.url, "--", "true") == 0
    assert not server.told
    assert _run("--notify", server.url, "--name", "x", "--", sys.executable, "-c", "{}['lr']") == 1
    (told,) = server.told
    assert (told["name"], told["exit_code"], told["category"]) == ("x", 1, "key_not_found")
    assert (told["root"], told["action"]) == ("KeyError: 'lr'", "stop")


def test_retries_are_told_when_they_are_over(kept: Kept, server: Server, tmp_path: Path) -> None:
    again = ("--notify", server.url, "--retries", "1", "--", "sh", "-c")
    assert _run(*again, "exit 3") == 3
    assert [told["attempt"] for told in server.told] == [2]
    assert _run(*again, f"[ -e {tmp_path}/x ] || {{ touch {tmp_path}/x; exit 3; }}") == 0
    assert len(server.told) == 1


def test_a_webhook_that_nobody_hears_changes_no_exit_code(kept: Kept) -> None:
    assert _run("--notify", "http://127.0.0.1:9/secret", "--", "sh", "-c", "exit 3") == 3
    text = kept.events["not_notified"].text
    assert text.startswith("127.0.0.1 was not notified: ")
    assert "secret" not in text
    assert _run("--notify", "ftp://x", "--", "true") == 2
