"""What is there as the program goes on, from events put together by hand."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from epochzero.check import check
from epochzero.check.findings import SourceLocation
from epochzero.check.launch.model import CommandSource, Job, LaunchScript
from epochzero.check.paths.analysis import PathAnalysis, analyze_paths
from epochzero.check.program.events import LibraryCall, Situation
from epochzero.check.program.model import Program
from epochzero.check.program.values import ANYTHING, Constant, Instance, Text, Value
from epochzero.check.target.model import Mount, Target, User

NOWHERE = Target("cluster")
AT = Situation(SourceLocation("train.py", 1))


def call(
    name: str, *arguments: Value | str, at: Situation = AT, **keywords: Value | str
) -> LibraryCall:
    """A call; texts among the arguments stand for constants."""
    values = tuple(Constant(one) if isinstance(one, str) else one for one in arguments)
    named = {key: Constant(one) if isinstance(one, str) else one for key, one in keywords.items()}
    receiver = Instance("pathlib.Path", values[:1]) if name.startswith("pathlib.") else None
    given = values[1:] if receiver else values
    return LibraryCall(name, given, named, receiver, True, Instance(name, values), at)


def analyze(
    folder: Path, *calls: LibraryCall, target: Target = NOWHERE, **of_job: object
) -> PathAnalysis:
    job = Job((), folder / "train.py", "", folder, **of_job)  # type: ignore[arg-type]
    return PathAnalysis(Program(job, {}, calls), target)


def told(paths: PathAnalysis) -> list[tuple[str, str]]:
    return [(one.rule, one.severity) for one in paths.problems]


READ = call("builtins.open", "data/a.txt")


def test_what_lies_in_the_folder_of_the_job_travels_with_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert told(analyze(tmp_path, READ)) == [("path-not-found", "error")]
    (tmp_path / "data" / "a.txt").write_text("x")
    found = analyze(tmp_path, READ)
    assert told(found) == []
    assert [one.local for one in found.opened] == [str(tmp_path / "data" / "a.txt")]


def test_what_git_ignores_may_lie_on_the_target_alone(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("# data\n/data/\n*.log\n")
    assert told(analyze(tmp_path, READ)) == [("path-not-found", "warning")]
    here = Target("here", here=True)
    assert told(analyze(tmp_path, READ, target=here)) == [("path-not-found", "error")]


@pytest.mark.parametrize(
    "before",
    [
        call("builtins.open", "data/a.txt", "w"),
        call("shutil.copy", "/x/a.txt", "data/a.txt"),
        call("datasets.Dataset().save_to_disk", "data"),
        call("some_library.fetch", "data"),
        call("some_library.fetch", target_folder="data/a.txt"),
        call("os.system", "unzip archive.zip data/a.txt"),
        call("builtins.open", Text(("data/", ANYTHING, ".txt")), "w"),
        call("tarfile.open().extractall", "data"),
    ],
)
def test_what_was_or_may_have_been_written_is_no_longer_missing(
    before: LibraryCall, tmp_path: Path
) -> None:
    assert not [rule for rule, _ in told(analyze(tmp_path, before, READ)) if "found" in rule]


@pytest.mark.parametrize(
    "before",
    [
        call("builtins.open", "data/b.txt", "w"),
        call("builtins.print", "data/a.txt"),
        call("os.path.join", "data", "a.txt"),
        call("logging.info", "reading %s", "data/a.txt"),
        call("subprocess.run", "nvidia-smi"),
        call("builtins.open", Text(("data/best_", ANYTHING, ".txt")), "w"),
    ],
)
def test_what_makes_no_such_file_changes_nothing(before: LibraryCall, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert told(analyze(tmp_path, before, READ)) == [("path-not-found", "error")]


def test_a_program_that_is_run_may_have_made_anything(tmp_path: Path) -> None:
    before = call("subprocess.run", "make")
    assert told(analyze(tmp_path, before, READ)) == [("path-not-found", "warning")]


def test_a_read_that_is_handled_is_no_failure(tmp_path: Path) -> None:
    for handled in ("FileNotFoundError", "OSError", "IOError", "Exception", "BaseException"):
        at = replace(AT, handled=frozenset([handled]))
        assert told(analyze(tmp_path, replace(READ, at=at))) == []
    at = replace(AT, handled=frozenset(["ValueError"]))
    assert told(analyze(tmp_path, replace(READ, at=at))) == [("path-not-found", "error")]


def test_a_read_behind_a_question_is_no_failure(tmp_path: Path) -> None:
    unsure = replace(READ, at=replace(AT, certain=False))
    asked = call("os.path.exists", "data")
    assert told(analyze(tmp_path, unsure)) == [("path-not-found", "warning")]
    assert told(analyze(tmp_path, asked, unsure)) == []


def test_the_current_folder_may_change(tmp_path: Path) -> None:
    (tmp_path / "run" / "data").mkdir(parents=True)
    (tmp_path / "run" / "data" / "a.txt").write_text("x")
    assert told(analyze(tmp_path, call("os.chdir", "run"), READ)) == []
    assert told(analyze(tmp_path, call("os.chdir", ANYTHING), READ)) == []


def test_a_folder_is_missed_once(tmp_path: Path) -> None:
    saves = [call("torch.save", ANYTHING, f"out/{name}.pt") for name in "abc"]
    assert told(analyze(tmp_path, *saves)) == [("path-parent-missing", "error")]


def test_the_folder_of_a_path_known_in_part_must_be_there(tmp_path: Path) -> None:
    save = call("torch.save", ANYTHING, Text(("out/", ANYTHING, ".pt")))
    made = call("os.makedirs", "out")
    assert told(analyze(tmp_path, save)) == [("path-parent-missing", "error")]
    assert told(analyze(tmp_path, made, save)) == []


def test_fields_that_a_library_fills_in_may_be_anything(tmp_path: Path) -> None:
    keeps = call("keras.callbacks.ModelCheckpoint", "model-{epoch:02d}.keras")
    load = call("keras.models.load_model", "model-07.keras")
    other = call("keras.models.load_model", "best.keras")
    assert told(analyze(tmp_path, keeps, load)) == []
    assert told(analyze(tmp_path, keeps, other)) == [("path-not-found", "error")]


def test_what_the_script_makes_before_is_there(tmp_path: Path) -> None:
    save = call("torch.save", ANYTHING, "out/best.pt")
    makes = (CommandSource(SourceLocation("launch.sh", 2), "out"),)
    assert told(analyze(tmp_path, save, launch_script=LaunchScript(makes=makes))) == []


def test_an_absolute_path_is_judged_only_where_the_target_is_known(tmp_path: Path) -> None:
    load = call("torch.load", "/models/best.pt")
    assert told(analyze(tmp_path, load)) == []
    assert [one.what for one in analyze(tmp_path, load).unknowns] == [
        "whether /models/best.pt exists"
    ]
    for files in ({"/models/best.pt": False}, {"/models": False}):
        assert told(analyze(tmp_path, load, target=Target("c", files=files))) == [
            ("path-not-found", "error")
        ]
    files = {"/models/best.pt": True}
    assert told(analyze(tmp_path, load, target=Target("c", files=files))) == []


def test_on_this_machine_its_file_system_is_asked(tmp_path: Path) -> None:
    job, other = tmp_path / "job", tmp_path / "other"
    job.mkdir()
    other.mkdir()
    here = Target("here", here=True)
    load = call("torch.load", str(other / "best.pt"))
    assert told(analyze(job, load, target=here)) == [("path-not-found", "error")]
    (other / "best.pt").write_text("x")
    assert told(analyze(job, load, target=here)) == []


def test_a_folder_of_an_image_is_not_that_of_the_job(tmp_path: Path) -> None:
    in_image = {"container": "nvcr.io/x", "working_folder": "/workspace"}
    assert told(analyze(tmp_path, READ, **in_image)) == []
    mounted = {**in_image, "mounts": {"/workspace": "."}}
    assert told(analyze(tmp_path, READ, **mounted)) == [("path-not-found", "error")]


def test_what_lies_in_a_mount_is_not_known_once(tmp_path: Path) -> None:
    reads = [call("builtins.open", f"/data/{name}.csv") for name in "abcd"]
    found = analyze(tmp_path, *reads, call("torch.load", "/models/best.pt")).unknowns
    assert [one.what for one in found] == [
        "whether /data/a.csv, /data/b.csv, /data/c.csv and 1 more exist",
        "whether /models/best.pt exists",
    ]
    assert "capture --list /data" in found[0].reason


def test_a_container_does_not_see_what_is_not_mounted(tmp_path: Path) -> None:
    here, load = Target("here", here=True), call("os.listdir", "/home")
    inside = {"container": "pytorch/pytorch"}
    assert told(analyze(tmp_path, load, target=here, **inside)) == [
        ("path-outside-mounts", "warning")
    ]
    mounted = {**inside, "mounts": {"/home": "/home"}}
    assert told(analyze(tmp_path, load, target=here, **mounted)) == []
    # The image may have it; nothing speaks against that.
    assert told(analyze(tmp_path, call("os.listdir", "/no/such"), target=here, **inside)) == []


def test_a_place_that_the_target_knows_is_no_laptop(tmp_path: Path) -> None:
    load = call("torch.load", "/home/jonas/best.pt")
    user = User("mara", 1000, 1000, (), "/home/mara")
    assert told(analyze(tmp_path, load, target=Target("c", user=user))) == [
        ("path-laptop", "error")
    ]
    mounts = (Mount("/"), Mount("/home/jonas", writable=False))
    assert told(analyze(tmp_path, load, target=Target("c", user=user, mounts=mounts))) == []


def test_links_that_go_round_are_survived(tmp_path: Path) -> None:
    os.symlink("loop", tmp_path / "loop")
    os.symlink("/nowhere/data", tmp_path / "data")
    loops = call("builtins.open", "loop/x", at=replace(AT, place=SourceLocation("train.py", 2)))
    # Where the link to another machine leads is not known, and nothing can be below the loop.
    found = analyze(tmp_path, READ, loops)
    assert [one.access.call.at.place.line for one in found.problems] == [2]


def test_a_world_is_worked_out_once(tmp_path: Path) -> None:
    program = Program(Job((), None, "m", tmp_path), {}, (READ,))
    assert analyze_paths(program, NOWHERE) is analyze_paths(program, NOWHERE)
    assert analyze_paths(program, Target("other")) is not analyze_paths(program, NOWHERE)


@pytest.mark.parametrize(
    "fetch",
    [
        "import tarfile\ntarfile.open('a.tar').extractall()",
        "import zipfile\nwith zipfile.ZipFile('a.tar') as archive:\n    archive.extractall()",
        "import shutil\nshutil.unpack_archive('a.tar')",
        "from py7zr import SevenZipFile\nSevenZipFile('a.tar').extractall()",
        "from torchvision.datasets.utils import download_url\ndownload_url('https://a.org/b', 'data')",
    ],
)
def test_what_is_unpacked_or_fetched_may_exist_afterwards(tmp_path: Path, fetch: str) -> None:
    (tmp_path / "a.tar").write_text("")
    (tmp_path / "train.py").write_text(f"{fetch}\nprint(open('data/b').read())\n")
    found = check(["python", "train.py"], Target("there"), folder=tmp_path)
    assert "path-not-found" not in [one.rule for one in found.findings]
