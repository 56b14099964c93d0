"""``epochzero target``: capture, show, diff and presets."""

from __future__ import annotations

import json
import sys
import venv
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochzero.check.target import read_target

if TYPE_CHECKING:
    from conftest import Command


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.toml"
    path.write_text(
        'format = 1\npython = "3.9.1"\ngpus = "2 x T4"\n[environment]\nDATA = "/data"\n'
    )
    return path


def test_capture_writes_a_file_that_can_be_read(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "very-secret-value")
    path = tmp_path / "here.toml"
    done = run("target", "capture", "-o", path, "--api", "click")
    assert done.code == 0
    assert str(path) in done.err
    target = read_target(path)
    assert target.name == "here"
    assert target.distributions is not None
    assert "Option" in target.api["click"]
    assert "very-secret-value" not in path.read_text()
    assert run("target", "diff", path, path).code == 0


def test_capture_to_standard_output_with_packages_of_a_list(run: Command, tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("torch==2.4.0\n")
    done = run("target", "capture", "--packages", tmp_path / "r.txt", "--api", "absent")
    assert done.code == 0
    (tmp_path / "t.toml").write_text(done.out)
    assert set(read_target(tmp_path / "t.toml").distributions or ()) == {"torch"}


def test_a_file_that_cannot_be_written(run: Command, tmp_path: Path) -> None:
    done = run("target", "capture", "-o", tmp_path / "no" / "x.toml", "--api", "absent")
    assert done.code == 2
    assert "x.toml" in done.err


def test_the_python_of_the_path_is_captured_unless_another_is_named(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, symlinks=True)
    packages = next((environment / "lib").glob("python*")) / "site-packages"
    (packages / "mine.py").write_text("")
    (packages / "mine-1.0.dist-info").mkdir()
    (packages / "mine-1.0.dist-info" / "METADATA").write_text("Name: mine\nVersion: 1.0\n")
    (packages / "mine-1.0.dist-info" / "RECORD").write_text("mine.py,,\n")
    monkeypatch.setenv("PATH", f"{environment}/bin")
    ran = run("target", "capture", "--api", "absent", "-o", tmp_path / "t.toml")
    first = ran.err.splitlines()[0]
    assert first.startswith(f"Python: {environment}/bin/python 3.")
    assert first.endswith("the `python` of the path")
    assert "mine" in (read_target(tmp_path / "t.toml").distributions or {})
    named = run("target", "capture", "--api", "absent", "--python", sys.executable)
    assert named.err.startswith(f"Python: {sys.executable} ")
    assert "[distributions.mine]" not in named.out
    (environment / "bin" / "torchrun").touch(0o755)
    monkeypatch.setenv("PATH", "/usr/bin")
    run("target", "capture", "--python", environment / "bin" / "python", "-o", tmp_path / "t.toml")
    assert "torchrun" in (read_target(tmp_path / "t.toml").programs or ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "which runs this; " in run("target", "capture", "--api", "absent").err


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        pytest.fail("there is no place for what comes of it")

    monkeypatch.setattr(import_module("epochzero.check.target"), "capture", work)
    monkeypatch.setattr(import_module("epochzero.cli.check"), "run_check", work)
    absent = tmp_path / "no" / "x.toml"
    ran = run("target", "capture", "-o", absent)
    assert (ran.code, f"directory {absent.parent} does not exist" in ran.err) == (2, True)
    picture = ["check", "--memory-picture"]
    ran = run(*picture, tmp_path / "no" / "x.svg", "--", "python", "train.py")
    assert (ran.code, "does not exist" in ran.err) == (2, True)
    ran = run(*picture, tmp_path / "x.png", "--", "python", "train.py")
    assert (ran.code, "x.svg" in ran.err) == (2, True)


def test_show(run: Command, written: Path) -> None:
    done = run("target", "show", written)
    assert done.code == 0
    assert "2 x Tesla T4" in done.out
    assert "3.9.1" in done.out
    assert run("target", "show", "8 x H100").code == 0


def test_diff_ends_as_diff_does(run: Command, written: Path) -> None:
    worse = run("target", "diff", "4 x A100 80GB", written)
    assert worse.code == 1
    lines = worse.out.splitlines()
    assert "gpus: 4 x" in lines[0]
    assert "gpu_out_of_memory" in worse.out
    assert "not compared" in worse.out
    assert run("target", "diff", written, written).code == 0
    assert run("target", "diff", written, "absent.toml").code == 2


def test_diff_as_json(run: Command, written: Path) -> None:
    done = run("target", "diff", "4 x A100", written, "--format", "json")
    said = json.loads(done.out)
    assert said["schema"] == "epochzero.target-diff/1"
    assert said["differences"][0]["kind"] == "gpus"


def test_presets(run: Command) -> None:
    done = run("target", "presets")
    assert done.code == 0
    for name in ("T4", "V100 32GB", "A100 80GB", "RTX 5090", "MI300X", "B200"):
        assert f"{name} " in done.out


def test_a_wrong_target_is_named(run: Command, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text("format = 1\nnodes = 'many'\n")
    done = run("target", "show", tmp_path / "t.toml")
    assert done.code == 2
    assert "t.toml: nodes" in done.err
