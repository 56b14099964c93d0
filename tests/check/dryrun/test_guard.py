"""Interception inside the job's Python, for real, alone and with Landlock."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from epochzero.check.dryrun import child
from epochzero.check.dryrun.contain import Exit, Limits, Means, containment_by
from epochzero.check.dryrun.process import run_contained
from tests.check.dryrun.test_process import CASES, LIMITS, folder, processes_with, state_of

__all__ = ["folder"]

CHILD = Path(child.__path__[0])
START = f"""
import json, os, sys, types
folder = {str(CHILD)!r}
name = "epochzero.check.dryrun.child"
while name:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
    name, folder = name.rpartition(".")[0], os.path.dirname(folder)
from epochzero.check.dryrun.child import guard
guard.install(
    os.environ.pop(guard.SCRATCH_VARIABLE),
    lambda record: os.write(4, json.dumps(record).encode() + b"\\n"),
    lambda path: os.path.dirname(path) == os.path.dirname(__file__),
)
"""


@pytest.fixture(params=[Means.INTERCEPTION, Means.LANDLOCK])
def run(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Exit]]:
    """Run a program under the guard; afterwards nothing may have changed or be left."""
    if request.param is Means.LANDLOCK and not sys.platform.startswith("linux"):
        pytest.skip("Landlock is Linux's")
    scratches = folder.parent / "scratches"
    scratches.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratches))
    before = state_of(folder)

    def run(code: str, **limits: float) -> Exit:
        (folder.parent / "script.py").write_text(START + textwrap.dedent(code))
        ended = run_contained(
            [sys.executable, str(folder.parent / "script.py")],
            folder=folder,
            environment={"PATH": os.environ["PATH"]},
            limits=dataclasses.replace(LIMITS, **({"seconds": 60} | limits)),
            spec=b"{}",
            containment=containment_by(request.param),
        )
        if ended.why.startswith("The job was not started"):
            pytest.skip(ended.why)
        return ended

    yield run
    assert state_of(folder) == before
    assert os.listdir(scratches) == []
    assert not processes_with(str(folder.parent))


def test_what_is_written_is_read_again(run: Callable[[str], Exit], folder: Path) -> None:
    ended = run(
        """
        import pathlib, shutil
        os.makedirs("out/deep")
        pathlib.Path("out/deep/a.txt").write_text("a")
        with open("data/kept.txt", "a") as stream:
            stream.write(" and more")
        print(open("data/kept.txt").read(), os.listdir("."), os.listdir("data"))
        os.replace("out/deep/a.txt", "out/b.txt")
        print(sorted(str(p) for p in pathlib.Path("out").rglob("*")), os.path.getsize("out/b.txt"))
        os.remove("data/kept.txt")
        print(os.path.exists("data/kept.txt"), os.listdir("data"))
        shutil.copytree("out", "copied"); shutil.rmtree("out"); print(os.path.exists("out"))
        os.chdir("copied"); print(os.getcwd(), open("b.txt").read())
        """
    )
    assert ended.output.splitlines() == [
        "kept and more ['data', 'out'] ['kept.txt']",
        "['out/b.txt', 'out/deep'] 1",
        "False []",
        "False",
        f"{folder}/copied a",
    ]
    told = {str(c.path.relative_to(folder)): c.how for c in ended.changes}
    assert told == {"copied": "created", "copied/b.txt": "created", "copied/deep": "created"}


def test_a_folder_is_deleted_moved_and_made_anew(run: Callable[[str], Exit]) -> None:
    ended = run(
        """
        import shutil
        os.rename("data", "moved"); print(os.listdir("."), os.listdir("moved"))
        os.mkdir("data"); print(os.listdir("data"))
        shutil.rmtree("moved"); print(os.listdir("."))
        for name in ("data/x", "nowhere/x"):
            try:
                print(len(open(name, "x").name))
            except FileNotFoundError as error:
                print(error.strerror)
        """
    )
    assert ended.output.splitlines() == [
        "['moved'] ['kept.txt']", "[]", "['data']", ended.output.splitlines()[3],
        "No such file or directory",
    ]  # fmt: skip


def test_no_link_leads_out_of_scratch(run: Callable[..., Exit]) -> None:
    ended = run(
        """
        os.symlink(os.path.abspath("data/kept.txt"), "file"); os.symlink(os.path.abspath("data"), "way")
        open("file", "w").write("gone"); open("way/new.txt", "w").write("new")
        print(open("data/kept.txt").read(), os.listdir("data"), os.readlink("file")[-8:])
        os.chmod("file", 0); os.remove("file"); print(os.path.exists("data/kept.txt"))
        """
    )
    assert ended.output == "gone ['kept.txt', 'new.txt'] kept.txt\nTrue\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import socket; socket.create_connection(('192.0.2.1', 80))", "Network is unreachable"),
        ("import socket; socket.getaddrinfo('example.org', 80)", "No names are resolved"),
        ("os.kill(-1, 9)", "is not signaled in a dry run"),
        ("os.kill(os.getppid(), 9)", "is not signaled in a dry run"),
        ("import _io; _io.FileIO('data/kept.txt', 'w')", "Not changed in a dry run"),
        ("os.unlink('kept.txt', dir_fd=os.open('data', os.O_RDONLY))", "Not changed in a dry run"),
    ],
)
def test_what_reaches_outside_is_refused(code: str, said: str, run: Callable[[str], Exit]) -> None:
    ended = run(code)
    assert ended.code == 1
    assert said in ended.output


def test_what_is_refused_is_recorded(run: Callable[[str], Exit]) -> None:
    ended = run("import socket\nsocket.create_connection(('192.0.2.1', 80))")
    assert ended.records == (b'{"kind": "network", "address": "192.0.2.1:80"}',)


def test_what_the_import_of_a_library_starts_is_not_recorded(
    run: Callable[[str], Exit], folder: Path
) -> None:
    libraries = folder.parent / "site-packages"
    libraries.mkdir()
    (libraries / "library.py").write_text(
        "import subprocess\ndef start(*command): subprocess.run(command)\nstart('true')\n"
    )
    (folder.parent / "helper.py").write_text("import library\nlibrary.start('test', '1')\n")
    ended = run(f"sys.path.append({str(libraries)!r})\nimport helper\nhelper.library.start('echo')")
    programs = [json.loads(record)["program"] for record in ended.records]
    assert programs == ["test", "echo"], ended.output


def test_a_checkpoint_is_saved_and_loaded(run: Callable[[str], Exit]) -> None:
    pytest.importorskip("torch")
    ended = run(
        """
        import torch
        torch.save({"a": torch.ones(3)}, "model.pt")
        print(torch.load("model.pt")["a"].sum().item(), os.path.exists("model.pt"))
        """,
        memory_bytes=4 << 30,
    )
    assert ended.output == "3.0 True\n", ended


def test_a_daemon_is_ended(run: Callable[[str], Exit]) -> None:
    ended = run(
        """
        import time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
        """
    )
    assert ended.code == 0


def test_landlock_holds_other_programs_back(folder: Path) -> None:
    ended = run_contained(
        ["/bin/sh", "-c", "echo gone > data/kept.txt"],
        folder=folder,
        environment={"PATH": os.environ["PATH"]},
        limits=Limits(),
        spec=b"",
        containment=containment_by(Means.LANDLOCK),
    )
    if ended.why.startswith("The job was not started"):
        pytest.skip(ended.why)
    assert "Permission denied" in ended.output
    assert (folder / "data" / "kept.txt").read_text() == "kept"


@pytest.mark.parametrize("name", ["python3.9", "python3.13"])
def test_the_guard_runs_in_the_pythons_of_jobs(name: str, tmp_path: Path) -> None:
    if shutil.which(name) is None or subprocess.run([name, "-V"], check=False).returncode:
        pytest.skip(f"no {name} here")
    script = tmp_path / "script.py"
    script.write_text(
        START + "os.makedirs('a/b'); open('a/b/c', 'w').write('x')\n"
        "import pathlib, shutil\n"
        "print([str(p) for p in pathlib.Path('.').rglob('c')]); shutil.rmtree('a')\n"
        "print(pathlib.Path('a').exists(), pathlib.Path('script.py').exists())\n"
    )
    ended = run_contained(
        [name, str(script)],
        folder=tmp_path,
        environment={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
        limits=Limits(),
        spec=b"",
        containment=containment_by(Means.INTERCEPTION),
    )
    assert ended.output == "['a/b/c']\nFalse True\n", ended
    assert os.listdir(tmp_path) == ["script.py"]


@pytest.mark.parametrize(
    "name",
    ["loops for ever", "ignores signals", "fork bomb", "fills memory", "crashes", "large file",
     "closes all descriptors", "deletes its folder", "locks its folder", "writes through a link",
     "raises its limits", "leaves at once", "reads its input"],
)  # fmt: skip
def test_what_namespaces_survive_is_survived_without(name: str, run: Callable[..., Exit]) -> None:
    case = CASES[name]
    ended = run(case.code, **case.limits)
    assert re.search(case.why, ended.why), ended
    assert re.search(case.output, ended.output, re.DOTALL), ended
