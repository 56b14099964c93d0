"""The same over Ray."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from epochzero import diagnose
from epochzero.errors import InputError
from epochzero.scale import bulk, diagnose_all, read_rows
from epochzero.scale.engines import RayEngine, WorkerLostError

LOG = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nKeyError: 'lr'\n"


def test_without_ray_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.log").write_text(LOG)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'epochzero\[ray\]'"):
        diagnose_all(str(tmp_path), f"{tmp_path}-out", engine="ray")


def test_a_cluster_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr("ray._private.node.Node", _never)
    try:
        with pytest.raises(
            InputError, match=r"Ray on this machine does not respond: The current node"
        ):
            RayEngine(1)
    finally:
        ray.shutdown()


def _never(*_: object, **__: object) -> None:
    raise Exception("The current node timed out during startup.")


@pytest.mark.filterwarnings("ignore")
def test_tasks_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    (tmp_path / "in").mkdir()
    for number in range(5):
        (tmp_path / "in" / f"{number}.log").write_text(LOG)
    on_sigterm = signal.getsignal(signal.SIGTERM)
    engine = RayEngine(1)
    monkeypatch.setattr(bulk, "opened", lambda *_, **__: engine)
    lost, wrong = engine.start(signal.raise_signal, signal.SIGKILL), engine.start(diagnose, "/no")
    with pytest.raises(WorkerLostError):
        engine.result(lost)
    with pytest.raises(InputError, match="no such file"):
        engine.result(wrong)
    done = diagnose_all(str(tmp_path / "in"), str(tmp_path / "out"), engine="ray")
    assert done.outcomes == {"failed": 5}
    assert {row["id"] for row in read_rows(str(tmp_path / "out"))} == {f"{n}.log" for n in range(5)}
    assert signal.getsignal(signal.SIGTERM) is on_sigterm
