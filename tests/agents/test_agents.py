"""What a coding agent gets: by the protocol's own client, in process, over a pipe, and over HTTP."""

from __future__ import annotations

import inspect
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import click
import httpx2
import pytest

mcp = pytest.importorskip("mcp", reason="the server is one of the MCP SDK")

from mcp import Client, StdioServerParameters, stdio_client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

from epochzero.agents.answers import MOST_CHARACTERS, MOST_TOKENS, Answers, tokens  # noqa: E402
from epochzero.agents.server import TOOLS, build  # noqa: E402
from epochzero.agents.tools import Tools  # noqa: E402
from epochzero.cli.mcp import command  # noqa: E402
from epochzero.errors import InputError  # noqa: E402
from epochzero.store.database import open_database  # noqa: E402
from tests.ports import unused_port  # noqa: E402
from tests.waiting import PATIENCE_S, wait_until  # noqa: E402

GIT = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
SECRET = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
LOG = f"""\
token {SECRET}
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    import nothing_like_it
ModuleNotFoundError: No module named 'nothing_like_it'
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.log").write_text(LOG)
    (root / "train.py").write_text("import nothing_like_it\n")
    (tmp_path / "outside.log").write_text(LOG)
    return root


@pytest.fixture
def tools(project: Path) -> Tools:
    return Tools([project], lambda: closing(open_database(project / "jobs.db")))


def _called(target: Any, name: str, arguments: dict[str, Any]) -> tuple[Any, bool]:
    """What a tool answers through the protocol, and whether that is an error."""

    async def call() -> tuple[Any, bool]:
        async with Client(target) as client:
            result = await client.call_tool(name, arguments)
            text = result.content[0].text
            return (text if result.is_error else json.loads(text)), bool(result.is_error)

    return anyio.run(call)


def test_the_tools_say_what_they_are_for_and_only_read(tools: Tools) -> None:
    async def listed() -> Any:
        async with Client(build(tools)) as client:
            return (await client.list_tools()).tools

    found = anyio.run(listed)
    assert {tool.name for tool in found} == set(TOOLS)
    for tool in found:
        assert tool.annotations.read_only_hint
        assert len(tool.description) > 60
        assert "\n\n\n" not in tool.description


def test_a_failed_job_is_diagnosed_without_its_secrets(tools: Tools) -> None:
    answer, failed = _called(build(tools), "diagnose", {"path": "train.log"})
    assert not failed
    assert answer["category"] == "library_not_found"
    assert answer["root"]["line"] == 5
    assert answer["evidence"]["items"]
    lines, _ = _called(build(tools), "log_lines", {"path": "train.log"})
    assert SECRET not in json.dumps([answer, lines])
    assert [one["line"] for one in lines["items"]] == [1, 2, 3, 4, 5]


def test_a_text_is_diagnosed(tools: Tools) -> None:
    assert tools.diagnose(text=LOG)["category"] == "library_not_found"


ARGUMENTS: dict[tuple[str, str], dict[str, str]] = {
    ("diagnose", "path"): {},
    ("log_lines", "path"): {},
    ("check", "folder"): {"command": "python train.py"},
    ("check", "target"): {"command": "python train.py"},
    ("locate", "repository"): {"report": "a bug"},
    ("locate", "log"): {"repository": "."},
    ("locate", "revision"): {"repository": ".", "report": "a bug"},
}
"""Each argument of a tool that names a file, with the arguments that it needs."""
NO_PATHS = {
    "diagnose.text", "log_lines.find", "check.command", "locate.report", "locate.level", "explain.word",
    "jobs.state", "jobs.category", "jobs.fingerprint", "jobs.name", "job.job", "more.handle",
}  # fmt: skip
"""What a command leads to is the subject of test_ways_out."""


@pytest.mark.parametrize(
    "path",
    ["../outside.log", "/etc/passwd", "link.log", "above/outside.log", "./link/../../outside.log",
     "/proc/self/cwd/../outside.log", "--output=x", "no\0thing", "~/x", "a" * 5000],
)  # fmt: skip
def test_paths_outside_of_the_roots_are_refused(tools: Tools, project: Path, path: str) -> None:
    (project / "link.log").symlink_to(project.parent / "outside.log")
    (project / "above").symlink_to(project.parent)
    for (name, argument), others in ARGUMENTS.items():
        answer, failed = _called(build(tools), name, others | {argument: path})
        assert failed, name
        assert "ModuleNotFoundError" not in answer


def test_each_text_argument_of_a_tool_is_tried_or_names_no_file() -> None:
    texts = {
        f"{name}.{parameter.name}"
        for name in TOOLS
        for parameter in inspect.signature(getattr(Tools, name)).parameters.values()
        if parameter.name != "self" and parameter.annotation != "int"
    }
    assert texts == {f"{name}.{argument}" for name, argument in ARGUMENTS} | NO_PATHS


def test_log_lines_are_found_around_and_at_the_end(tools: Tools, project: Path) -> None:
    (project / "long.log").write_text("".join(f"line {n}\n" for n in range(1, 1001)))

    def numbers(**asked: Any) -> list[int]:
        return [one["line"] for one in tools.log_lines("long.log", **asked)["items"]]

    assert numbers(around=500, count=4) == [498, 499, 500, 501]
    assert numbers(around=1, count=3) == [1, 2, 3]
    assert numbers(find="LINE 99", count=2) == [99, 990]
    assert numbers(count=2) == [999, 1000]


def test_a_check_reads_and_runs_nothing(tools: Tools, project: Path) -> None:
    (project / "train.py").write_text("open('ran', 'w')\nimport nothing_like_it\n")
    answer = tools.check("python train.py")
    assert "module-missing" in {one["rule"] for one in answer["findings"]["items"]}
    assert not (project / "ran").exists()


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("diagnose", {}, "either"),
        ("check", {"command": "python 'train.py"}, "cannot be parsed"),
        ("locate", {"repository": "."}, "report"),
        ("locate", {"repository": ".", "report": "a bug"}, "not a git repository"),
        ("explain", {"word": "nothing_at_all"}, "nothing_at_all"),
        ("explain", {"word": "tensor_mismatched"}, "did you mean tensor_mismatch?"),
        ("job", {"job": "last"}, "job"),
        ("more", {"handle": "lines-99:3"}, "again"),
        ("log_lines", {"path": "none.log"}, "no such file"),
    ],
)
def test_what_cannot_be_answered_says_why(
    tools: Tools, name: str, arguments: dict[str, Any], told: str
) -> None:
    answer, failed = _called(build(tools), name, arguments)
    assert failed
    assert told in answer


def test_answers_name_calls_that_work(tools: Tools, project: Path) -> None:
    """A directory of logs too, whose root is in one of its files."""
    subprocess.run(["git", "init", "-q", project], check=True)
    for words in (["add", "train.py"], ["commit", "-qm", "Training"]):
        subprocess.run(["git", "-C", project, *GIT, *words], check=True)
    (project / "ranks").mkdir()
    (project / "ranks" / "rank0.log").write_text(LOG)
    for path in ("train.log", "ranks"):
        lines, code = tools.diagnose(path)["next"]
        assert lines["tool"] == "log_lines"
        around = tools.log_lines(**lines["arguments"])["items"]
        assert around[4]["text"].startswith("ModuleNotFoundError")
        assert code["tool"] == "locate"
        (function,) = tools.locate(**code["arguments"])["next"]
        assert tools.locate(**function["arguments"])["level"] == "function"
    (check,) = tools.check("python train.py")["next"]
    assert tools.check(**check["arguments"])["findings"]["items"]
    assert "next" not in tools.check("python -c 'print(1)'")


def test_words_are_explained(tools: Tools) -> None:
    assert "definition" in tools.explain("tensor_mismatch")
    assert tools.explain("module-missing")["id"] == "module-missing"
    assert tools.explain("pytorch/cuda-out-of-memory")["meaning"]
    assert tools.explain("zero_grad_missing")["title"]


def test_places_are_ranked(tools: Tools, project: Path) -> None:
    person = {
        f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    for words in (["init", "-q"], ["add", "train.py"], ["commit", "-q", "-m", "begin"]):
        subprocess.run(["git", *words], cwd=project, check=True, env={**os.environ, **person})
    answer = tools.locate(".", log="train.log", count=3)
    (first, *_) = answer["items"]["items"]
    assert first["path"] == "train.py"
    assert first["excerpt"].startswith("1: import nothing_like_it")


def test_jobs_are_listed(tools: Tools) -> None:
    assert tools.jobs(state="failed") == {"items": []}


def test_long_answers_come_by_pages_of_bounded_size() -> None:
    answers = Answers()
    items = [{"number": n, "text": f"{SECRET} {'x' * 9000}"} for n in range(50)]
    page = answers.answer({}, rows=items)["rows"]
    seen = [one["number"] for one in page["items"]]
    while "more" in page:
        assert page["left"] == 50 - len(seen)
        page = answers.more(page["more"])
        assert len(json.dumps(page)) < 50 * MOST_CHARACTERS
        assert tokens(page) < 1.1 * MOST_TOKENS
        assert SECRET not in json.dumps(page)
        seen += [one["number"] for one in page["items"]]
    assert seen == list(range(50))
    for wrong in (
        "",
        "rows",
        "rows-1",
        "rows-1:",
        "rows-1:-1",
        "rows-1:50",
        "rows-1:x",
        "rows-9:0",
    ):
        with pytest.raises(InputError):
            answers.more(wrong)


@pytest.mark.parametrize(
    "noise", ["", f"[{'-1.00983408e+00, ' * 90}]\n", "\u2588\u258f" * 400 + "\n"]
)
def test_an_answer_is_bounded_as_a_whole(tools: Tools, project: Path, noise: str) -> None:
    """Not each of its lists."""
    frames = "".join(
        f'  File "/opt/venv/lib/python3.11/site-packages/tensorflow/python/autograph/impl/api{n}.py", '
        f"line {n}, in converted_call\n    result = converted_f{n}(*effective_args, **kwargs)\n"
        for n in range(90)
    )
    error = f"Traceback (most recent call last):\n{frames}ValueError: wrong {noise * 3}\n"
    for rank in range(8):
        (project / f"ranks/rank_{rank}.log").parent.mkdir(exist_ok=True)
        (project / f"ranks/rank_{rank}.log").write_text(noise * 60 + error)
    answer = tools.diagnose("ranks")
    assert answer["stack"]["left"]
    assert answer["root"]
    for shown in (answer, tools.log_lines("ranks/rank_0.log", count=400)):
        assert tokens(shown) < 1.1 * MOST_TOKENS


def test_a_log_without_a_reason_is_read_next(tools: Tools, project: Path) -> None:
    (project / "silent.log").write_text("epoch 1 loss 0.5\n")
    (call,) = tools.diagnose("silent.log")["next"]
    assert tools.log_lines(**call["arguments"])["items"][-1]["text"] == "epoch 1 loss 0.5"


def test_over_a_pipe(project: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "epochzero", "mcp"],
        cwd=str(project),
        env=dict(os.environ),
    )
    answer, failed = _called(stdio_client(server), "diagnose", {"path": "train.log"})
    assert not failed
    assert answer["category"] == "library_not_found"


def _listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def served(project: Path) -> Iterator[str]:
    port = unused_port()
    (project / "token").write_text("a secret\n")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "epochzero",
            "mcp",
            "--http",
            f"127.0.0.1:{port}",
            "--token-file",
            "token",
        ],
        cwd=project,
        stderr=subprocess.PIPE,
    )
    address = f"http://127.0.0.1:{port}/mcp"
    try:
        wait_until(lambda: _listens(port))
        yield address
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        assert process.stderr is not None
        process.stderr.close()


def test_over_http_with_a_token(served: str) -> None:
    assert httpx2.post(served, json={}, timeout=PATIENCE_S).status_code == 401
    assert (
        httpx2.post(
            served, json={}, headers={"Authorization": "Bearer no"}, timeout=PATIENCE_S
        ).status_code
        == 401
    )
    headers = {"Authorization": "Bearer a secret"}

    async def call() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as session,
            Client(streamable_http_client(served, http_client=session)) as client,
        ):
            return await client.call_tool("explain", {"word": "timeout"})

    answer = anyio.run(call)
    assert not answer.is_error
    assert json.loads(answer.content[0].text)["name"] == "timeout"


@pytest.mark.parametrize("address", ["0.0.0.0:80", "127.0.0.1", ":1", "127.0.0.1:99999", "x:y"])
def test_an_address_that_is_wrong_or_open_is_refused(address: str) -> None:
    with pytest.raises((InputError, click.UsageError), match=r"--token-file|HOST:PORT"):
        command.main(["--http", address], standalone_mode=False)


@pytest.mark.parametrize("name", ["module-missing", "gpu_out_of_memory"])
def test_a_new_server_explains_a_word_first(name: str, tmp_path: Path) -> None:
    """No earlier question has imported anything."""
    code = (
        "from epochzero.agents.tools import Tools\n"
        f"print(Tools([{str(tmp_path)!r}], None).explain({name!r})['title'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
