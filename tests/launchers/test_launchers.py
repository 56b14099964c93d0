"""The catalogue of launchers: what its files say is understood, and one file is all that a launcher needs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochzero import launchers
from epochzero.check.launch import read_job
from epochzero.check.launch.meanings import MEANINGS
from epochzero.injected.companions import AT_START, Companion, with_companions
from epochzero.injected.ranks import own_rank
from epochzero.launchers import Launcher
from epochzero.logs import prefix, source
from epochzero.run.records.launch import launch_of
from epochzero.run.simulate.ranks import in_ranks

CATALOGUE = Path(launchers.__file__).parent
OF_FILES = {
    "", "optional", "folder", "folder_inside", "accelerate_config", "makefile", "hostfile", "wrap", "manifest",
    "entrypoint", "conda_environment",
}  # fmt: skip
"""Meanings that `epochzero.check.launch.command` reads itself: they name files or what is started."""
BEACON = r"""
names = ["beacon"]
starts = "script"
reserves = ["BEACON_"]
rank_logs = ['beacon\.(\d+)$']

[options]
"-w --width" = "processes"

[sets]
BEACON_PLACE = "rank"
BEACON_WIDTH = "processes"

[[processes]]
system = "beacon"
known_by = "BEACON_PLACE"
order = 5
rank = "BEACON_PLACE"
world_size = "BEACON_WIDTH"
job = ["BEACON_RUN"]

[[log_prefixes]]
pattern = '\[beacon (?P<rank>\d+)\] '
example = "[beacon 3] loss 0.1"
"""


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.toml")), ids=lambda path: path.stem)
def test_what_a_file_says_is_understood(path: Path) -> None:
    names = tomllib.loads(path.read_text(encoding="utf-8"))["names"]
    launcher = next(known for known in launchers.every() if known.names[0] == names[0])
    meanings = {option.meaning for option in launcher.options.values()}
    assert meanings <= {*OF_FILES, *MEANINGS}
    assert launcher.starts in {
        "command", "script", "batch", "container", "services", "make", "nothing"
    }  # fmt: skip
    assert set(launcher.switches.values()) <= {"module", "command"}
    assert set(launcher.sets.values()) <= {"", *launchers.KNOWN_VALUES}
    assert launcher.elsewhere <= {"files", "processes"}
    for one in launcher.log_prefixes:
        assert re.match(one.pattern, one.example)
        assert prefix.split(one.example)[0] != prefix.NOTHING
        assert not re.match(one.pattern, prefix.split(one.example)[1])


def test_no_two_files_have_the_same_program_or_order() -> None:
    files: dict[tuple[str, object], list[str]] = {}
    for path in sorted(CATALOGUE.glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        keys = [
            (field, value) for field in ("names", "modules") for value in content.get(field, ())
        ]
        keys += [("order", processes["order"]) for processes in content.get("processes", ())]
        for key in keys:
            files.setdefault(key, []).append(path.name)
    assert files
    assert {key: names for key, names in files.items() if len(names) > 1} == {}


@pytest.fixture
def beacon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launcher]:
    """A launcher that exists only in a file of its own."""
    for path in CATALOGUE.glob("*.toml"):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "beacon.toml").write_text(BEACON)
    monkeypatch.setattr(launchers, "_FOLDER", tmp_path)
    _forget()
    yield launchers.by_name()["beacon"]
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for module in (launchers, prefix, source):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    prefix._CANDIDATES.clear()


def test_one_file_is_all_that_a_launcher_needs(beacon: Launcher, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('step')\n")
    (job,) = read_job(["beacon", "-w", "4", "train.py"], tmp_path).jobs
    assert (job.launchers, job.allocation.processes) == (("beacon",), 4)
    assert job.environment == {"BEACON_PLACE": None, "BEACON_WIDTH": "4"}

    launch = launch_of({"BEACON_PLACE": "2", "BEACON_WIDTH": "4", "BEACON_RUN": "7"}, "train")
    assert (launch.launcher, launch.rank, launch.world_size) == ("beacon", 2, 4)

    _, ranks = in_ranks(["beacon", "train.py"], str(tmp_path), {}, 2, None)
    assert [rank["BEACON_PLACE"] for rank in ranks] == ["0", "1"]

    inside = with_companions({"BEACON_PLACE": "3"}, [Companion(AT_START, "a:b")], tmp_path)
    assert own_rank(inside) == 3
    assert "beacon" in inside["EPOCHZERO_LAUNCHERS"].split(",")

    assert prefix.split("[beacon 3] loss 0.1")[0].rank == 3
    assert source.rank_of("logs/beacon.3") == 3
