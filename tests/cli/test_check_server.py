"""``epochzero check --serve``: the same answers as without a server, and nobody else's."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from epochzero.check.program import shared_modules
from epochzero.check.program.model import Module
from epochzero.cli import check_client
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork")
ROOT = Path(__file__).resolve().parents[2]
EPOCHZERO = Path(sysconfig.get_path("scripts"), "epochzero")
SECONDS = re.compile(rb"\d+\.\d s\b|(?<=\"seconds\": )[\d.]+")
TARGET = """\
format = 1
name = "cluster"
python = "3.11.4"

[distributions.torch]
version = "2.5.0"
modules = ["torch"]
"""
TRAIN = """\
import os
import torch
import helper

helper.run(int(os.environ.get("EPOCHS", "3")))
"""
HELPER = """\
def run(epochs):
    print("%d of %d" % (epochs, 3))
"""
FAILING_STEP = """\
import torch

model = torch.nn.Linear(8, 4)
for step in range(1000):
    model(torch.randn(2, 9)).sum().backward()
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: bytes
    err: bytes


@dataclass(frozen=True)
class Server:
    """A running server: its process, and the environment in which a client finds it."""

    process: subprocess.Popen[str]
    environment: dict[str, str]

    def work(self) -> int:
        """A number that grows with every check that a child carries out: page faults of ended children."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[8])

    def children(self) -> list[str]:
        pid = self.process.pid
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@contextmanager
def running(**variables: str) -> Iterator[Server]:
    # The path of a socket has at most about 100 characters, which pytest's directories may exceed.
    with tempfile.TemporaryDirectory(prefix="epochzero-", dir="/tmp") as folder:
        environment = {
            **os.environ,
            "XDG_RUNTIME_DIR": folder,
            "EPOCHZERO_HOME": folder,
            **variables,
        }
        process = subprocess.Popen(
            [EPOCHZERO, "check", "--serve"], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            assert "ready for checks" in process.stdout.readline()
            yield Server(process, environment)
        finally:
            process.terminate()
            process.communicate()
        assert list(Path(folder, "epochzero").iterdir()) == []


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (("train.py", TRAIN), ("helper.py", HELPER), ("cluster.toml", TARGET)):
        (tmp_path / name).write_text(text)
    return tmp_path


def check(environment: dict[str, str], folder: Path, *arguments: str) -> Answer:
    done = subprocess.run(
        [EPOCHZERO, "check", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
    )
    return Answer(done.returncode, SECONDS.sub(b"0", done.stdout), done.stderr)


def assert_same(server: Server, folder: Path, *arguments: str, **variables: str) -> Answer:
    """The answer of the server, which is that of a check without one."""
    environment = server.environment | variables
    before = server.work() if sys.platform == "linux" else 0
    served = check(environment, folder, *arguments)
    assert sys.platform != "linux" or server.work() > before, "the server was not used"
    with tempfile.TemporaryDirectory() as empty:
        cold = check(environment | {"XDG_RUNTIME_DIR": empty}, folder, *arguments)
    assert served == cold
    return served


def request_of(server: Server, folder: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """A request as the client sends it, from a process of its kind."""
    script = (
        "import json, sys; from epochzero.cli import check_client; sys.path[0] = sys.argv[1];"
        "print(json.dumps(check_client._request(sys.argv[2:])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(EPOCHZERO.parent), *arguments],
        cwd=folder, env=server.environment, capture_output=True, check=True,
    )  # fmt: skip
    request: dict[str, Any] = json.loads(done.stdout)
    return request


@contextmanager
def asked(server: Server, request: dict[str, Any]) -> Iterator[Callable[[], dict[str, Any]]]:
    """Sends a request, and yields how to read the next message of the answer."""
    (file,) = Path(server.environment["XDG_RUNTIME_DIR"], "epochzero").iterdir()
    with socket.socket(socket.AF_UNIX) as client, open(os.devnull, "r+b") as null:
        client.connect(str(file))
        check_client.send(client, request, [null.fileno()] * 3)
        yield lambda: check_client._received(client)


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_the_answer_is_that_of_a_check_without_a_server(
    server: Server, project: Path, form: str
) -> None:
    arguments = ("--format", form, "--target", "cluster.toml", "--", "python", "train.py")
    assert assert_same(server, project, *arguments).code == 0
    (project / "helper.py").write_text(HELPER.replace(", 3))", ",))"))
    failing = assert_same(server, project, *arguments)
    assert failing.code == 1
    assert b"helper.py" in failing.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--", "python", "missing.py"),
        ("--", "python", "train.py"),
        ("--target", "missing.toml", "--", "python", "train.py"),
        ("--rules",),
        ("--no-such-option",),
        (),
    ],
)
def test_errors_and_other_output_are_the_same(
    server: Server, project: Path, arguments: tuple[str, ...]
) -> None:
    assert_same(server, project, *arguments)


def test_any_change_is_seen(server: Server, project: Path) -> None:
    """Every file that is read or looked for, the variables and the settings decide, not an earlier answer."""
    package = project / "pandas"

    def given(name: str, text: str) -> Callable[[], object]:
        return lambda: (project / name).write_text(text)

    changes: list[Callable[[], object]] = [
        given("train.py", TRAIN.replace("import helper", "import pandas, helper")),
        package.mkdir,
        given("pandas/__init__.py", "raise SystemExit(3)"),
        lambda: shutil.rmtree(package),
        given("train.py", TRAIN + "torch.no_such_function()\n"),
        given("cluster.toml", TARGET.replace("2.5.0", "1.0.0")),
        given("pyproject.toml", "[tool.epochzero.check]\nignore = ['api-missing']\n"),
        (project / "pyproject.toml").unlink,
        (project / "helper.py").unlink,
        given("helper.py", "def run(epochs):\n    return 1 / (epochs - 4)\n"),
    ]
    answers = []
    for change in changes:
        change()
        answers.append(
            assert_same(server, project, "--target", "cluster.toml", "--", "python", "train.py").out
        )
    answers.append(
        assert_same(
            server, project, "--target", "cluster.toml", "--", "python", "train.py", EPOCHS="4"
        ).out
    )
    assert len(set(answers)) >= 6


def test_only_a_process_like_the_server_is_answered(server: Server, project: Path) -> None:
    request = request_of(server, project, ["check", "--rules"])
    with asked(server, request) as received:
        assert received() == {"started": True}
        assert received() == {"exit": 0}
    for name, value in request["facts"].items():
        other = request | {"facts": request["facts"] | {name: [value, "different"]}}
        with asked(server, other) as received:
            assert received() == {"refused": "another process"}, name


def test_what_is_no_request_does_not_end_the_server(server: Server, project: Path) -> None:
    (file,) = Path(server.environment["XDG_RUNTIME_DIR"], "epochzero").iterdir()
    for data in (b"", b"x", b"\xff" * 8, b"\0" * 7 + b"\2{}", b"\0" * 7 + b"\4null"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(file))
            client.sendall(data)
    assert_same(server, project, "--target", "cluster.toml", "--", "python", "train.py")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_check_ends_with_its_client(server: Server, project: Path) -> None:
    (project / "train.py").write_text("import time\nwhile True: time.sleep(1)\n")
    arguments = ["check", "--dry", "--dry-time", "600", "--", "python", "train.py"]
    with asked(server, request_of(server, project, arguments)) as received:
        assert received() == {"started": True}
        wait_until(lambda: bool(server.children()))
    wait_until(lambda: not server.children())


def test_a_server_whose_files_change_refuses_and_ends(tmp_path: Path, project: Path) -> None:
    loaded = tmp_path / "loaded"
    loaded.mkdir()
    (loaded / "sitecustomize.py").write_text("")
    with running(PYTHONPATH=str(loaded)) as server:
        request = request_of(server, project, ["check", "--rules"])
        with asked(server, request) as received:
            assert received() == {"started": True}
            assert received() == {"exit": 0}
        (loaded / "sitecustomize.py").write_text("import os\n")
        with asked(server, request) as received:
            assert received() == {"refused": "EpochZero has changed"}
        assert server.process.wait() == 0


def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as silent:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setattr(check_client, "ANSWER_S", 0.01)
        file = check_client.socket_file()
        assert file is not None
        file.parent.mkdir(mode=0o700)
        silent.bind(str(file))
        file.chmod(0o600)
        silent.listen()
        with open(os.devnull, "r+") as null:
            for name in ("stdin", "stdout", "stderr"):
                monkeypatch.setattr(sys, name, null)
            assert check_client.exit_code(["check", "--rules"]) is None
        with silent.accept()[0] as asked_one:
            request, streams = check_client.receive(asked_one, 3, 1 << 20)
        for number in streams:
            os.close(number)
        assert request["arguments"] == ["check", "--rules"]


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_directory_that_others_can_change_is_not_used(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "epochzero"
    folder.mkdir()
    folder.chmod(mode)
    done = subprocess.run(
        [EPOCHZERO, "check", "--serve"], env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "other users can change this directory" in done.stderr


def test_a_second_server_reports_the_first(server: Server) -> None:
    done = subprocess.run(
        [EPOCHZERO, "check", "--serve"], env=server.environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "already running" in done.stderr


def test_a_stored_module_is_used_for_its_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_modules, "_stored", {})
    monkeypatch.setattr(shared_modules, "MOST_TEXT", 25)
    keys = [(name, f"{name}.py", f"/job/{name}.py", None) for name in "ab"]
    modules = [
        Module(key[0], key[1], Path(key[2]), text, ast.parse(text))
        for key, text in zip(keys, ["x = 1  # the first\n", "y = 2\n"], strict=True)
    ]
    for key, module in zip(keys, modules, strict=True):
        shared_modules.store(key, module)
    assert shared_modules.find(keys[0], modules[0].text) is modules[0]
    assert shared_modules.find(keys[0], "x = 3\n") is None
    assert shared_modules.find(keys[1], modules[0].text) is None
    # Too much: what was stored first is dropped.
    shared_modules.store((*keys[0][:3], (3, 9)), modules[1])
    assert shared_modules.find(keys[0], modules[0].text) is None
    assert shared_modules.find(keys[1], modules[1].text) is modules[1]


@pytest.mark.needs_torch
@pytest.mark.skipif(sys.platform != "linux", reason="forks of a process with torch")
def test_dry_runs_are_the_same_and_find_torch_imported(server: Server, project: Path) -> None:
    (project / "train.py").write_text(FAILING_STEP)
    arguments = ("--dry", "--format", "json", "--", sys.executable, "train.py")
    answer = assert_same(server, project, *arguments)
    assert answer.code == 1
    assert b'"tensor_mismatch"' in answer.out
    before = server.work()
    assert check(server.environment, project, *arguments) == answer
    assert server.work() > before, "the server was not used"
    # What torch imports is loaded before the job imports anything.
    loaded = "'warm' if 'sympy' in sys.modules else 'cold'"
    (project / "train.py").write_text(f"import sys\nopen({loaded}, 'w').write('x')\n")

    def written(**variables: str) -> str:
        (run,) = json.loads(check(server.environment | variables, project, *arguments).out)["dry"]
        (file,) = run["effects"]["written"]
        return str(file["place"])

    assert written() == "warm"
    assert written(EPOCHS="4") == "warm"
    assert written(OMP_NUM_THREADS="3") == "cold"
    (project / "sympy.py").write_text("")
    assert written() == "cold"
