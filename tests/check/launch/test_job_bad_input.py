"""Commands that name what is not there, is no Python or cannot be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.check.launch import Submission, read_job
from epochzero.errors import InputError

Submit = Callable[..., Submission]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python tarin.py", "tarin.py does not exist; did you mean train.py?"),
        ("torchrun src/train.py", "src/train.py does not exist in src; did you mean train.py?"),
        ("python -m package.mian", "package.mian: no module of that name in package; did you mean package/main.py?"),
        ("python src", "src is a directory without __main__.py; did you mean src/fit.py?"),
        ("python run.sh", "run.sh is a shell script, but Python is to run it"),
        ("python book.ipynb", "book.ipynb is a notebook"),
        ("python model.bin", "model.bin: binary, not a script"),
        ("python loop.py", "loop.py cannot be read: Too many levels of symbolic links"),
        ("python dangling.py", "dangling.py does not exist"),
        ("bash rnu.sh", "rnu.sh does not exist or is not a file; did you mean run.sh?"),
        ("bash src", "src is a directory, not a file"),
        ("bash loop.sh", "loop.sh: "),
        ("sbatch huge.sh", "huge.sh is larger than 4 MB"),
        ("python huge.sh", "huge.sh is larger than 4 MB"),
        ("python pipe.py", "pipe.py is not a file"),
        ("bash pipe.sh", "pipe.sh cannot be read: not a regular file"),
        ("ls", "`ls` runs no Python program that can be read here; it runs ls."),
        ("poetry run trainer", "runs no Python program"),
        ("python --version", "runs no Python program"),
        ("docker build .", "runs no Python program"),
        ("", "missing command"),
    ],
)  # fmt: skip
def test_the_message_says_what_is_wrong(
    submit: Submit, tmp_path: Path, command: str, message: str
) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "loop.sh").symlink_to("loop.sh")
    (tmp_path / "dangling.py").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.py")
    os.mkfifo(tmp_path / "pipe.sh")
    (tmp_path / "model.bin").write_bytes(b"\0\1\2")
    with (tmp_path / "huge.sh").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(InputError) as refused:
        submit(command, {"run.sh": "#!/bin/sh\npython train.py\n", "book.ipynb": "{}"})
    assert message in str(refused.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read everything")
def test_what_may_not_be_read_is_told(submit: Submit, tmp_path: Path) -> None:
    (tmp_path / "secret.sh").write_text("python train.py")
    (tmp_path / "secret.sh").chmod(0)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        submit("bash secret.sh")


def test_links_are_followed_and_loops_of_folders_are_not(submit: Submit, tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(".")
    (tmp_path / "linked.py").symlink_to("train.py")
    assert submit("python linked.py").jobs[0].script == tmp_path / "linked.py"
    with pytest.raises(InputError, match=r"did you mean train\.py"):
        submit("python trainn.py")


def test_a_name_that_is_no_path_is_not_there(submit: Submit) -> None:
    for name in ("x" * 5000 + ".py", "a\0b.py", "\udcff.py"):
        with pytest.raises(InputError):
            submit(f"python {name}")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a directory"):
        read_job(["python", "x.py"], tmp_path / "nowhere")
