"""The diagnosis is put where the experiment is, by the tools themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from epochzero.diagnose import Diagnoser
from epochzero.logs.source import Log
from epochzero.run.notes import leave_note, run_tags
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import Decision, JobEvent, Start
from tests.run.conftest import Kept

Run = Callable[..., subprocess.CompletedProcess[bytes]]

LOG = """\
Traceback (most recent call last):
  File "/home/ann/train.py", line 7, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""
MLFLOW_JOB = """
import mlflow, sys
mlflow.set_experiment("toys")
with mlflow.start_run(description="A toy."):
    mlflow.log_metric("loss", 1.0)
"""
READ = """
import json, mlflow
runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
print(json.dumps({run.info.run_id: run.data.tags for run in runs}))
"""
TENSORBOARD_JOB = """
import sys
from tensorboard.summary.writer.event_file_writer import EventFileWriter
EventFileWriter(sys.argv[1].removeprefix("--logdir=")).close()
"""


def _leave(tool: str, started: Start, environment: dict[str, str]) -> JobEvent:
    clock = Clock()
    decision = Decision(*clock.now(), "stop", reason="It fails again.")
    diagnosis = Diagnoser().diagnose([Log("log", text=LOG.encode())])
    return leave_note(tool, started, diagnosis, decision, environment=environment, clock=clock)


def _started(folder: Path, *words: str) -> Start:
    command = (sys.executable, *words)
    return Start("j1", 1, "train", command, str(folder), "node", "ann", 1, time.time())


@pytest.mark.parametrize("by_number", [False, True])
def test_a_run_of_mlflow_gets_tags_and_text(tmp_path: Path, by_number: bool) -> None:
    pytest.importorskip("mlflow", reason="the note is written by MLflow itself")
    environment = {**os.environ, "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/runs.db"}

    def mlflow(program: str, tags: dict[str, str]) -> str:
        command = [sys.executable, "-c", program]
        given = environment | tags
        return subprocess.check_output(command, cwd=tmp_path, env=given, text=True)

    started = _started(tmp_path)
    for job in ("other", "j1"):
        mlflow(MLFLOW_JOB, run_tags({}, job=job, attempt=1))
    runs = {tags["epochzero.job"]: run for run, tags in json.loads(mlflow(READ, {})).items()}
    if by_number:
        environment["MLFLOW_RUN_ID"] = runs["j1"]
    event = _leave("mlflow", started, environment)
    assert (event.what, event.details.get("where")) == ("note_left", f"run {runs['j1']}"), event
    tags = json.loads(mlflow(READ, {}))
    ours, other = tags[runs["j1"]], tags[runs["other"]]
    assert ours["epochzero.category"] == "gpu_out_of_memory"
    assert ours["epochzero.fingerprint"].startswith("2:")
    assert (ours["epochzero.retry"], ours["epochzero.decision"]) == ("fails_again", "stop")
    assert ours["mlflow.note.content"].startswith("A toy.\n\n**GPU out of memory** (attempt 1)")
    assert "At `/home/ann/train.py:7`" in ours["mlflow.note.content"]
    assert "epochzero.category" not in other


def test_where_mlflow_was_not_used_no_store_is_made(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="the note is written by MLflow itself")
    environment = {n: v for n, v in os.environ.items() if not n.startswith("MLFLOW")}
    event = _leave("mlflow", _started(tmp_path), environment)
    assert event.what == "note_failed"
    assert event.text.endswith("no MLflow run of the job was found")
    assert list(tmp_path.iterdir()) == []


def test_the_text_stands_beside_the_newest_event_file(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the note is written by TensorBoard itself")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (tmp_path / "work").mkdir()
    logs = tmp_path / "logs"
    (logs / "old").mkdir(parents=True)
    (logs / "old/events.out.tfevents.1.host").touch()
    os.utime(logs / "old/events.out.tfevents.1.host", (1, 1))
    started = _started(tmp_path / "work", "-c", TENSORBOARD_JOB, f"--logdir={logs}")
    command = [*started.command[:-1], f"{started.command[-1]}/new"]
    subprocess.run(command, cwd=started.folder, check=True)
    event = _leave("tensorboard", started, dict(os.environ))
    assert (event.what, event.details["where"]) == ("note_left", str(logs / "new")), event
    read = EventAccumulator(str(logs / "new")).Reload()
    (tensor,) = read.Tensors("epochzero/diagnosis")
    assert b"CUDA out of memory." in tensor.tensor_proto.string_val[0]


@pytest.mark.parametrize("tool", ["mlflow", "tensorboard"])
def test_a_tool_that_fails_is_told_in_an_event(
    tmp_path: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{tool}.py").write_text(f"raise ImportError('no {tool} here')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    event = _leave(tool, _started(tmp_path), environment)
    assert event.what == "note_failed"
    assert f"{tool} is not installed" in event.text


def test_a_folder_that_is_gone_is_told_in_an_event(tmp_path: Path) -> None:
    event = _leave("tensorboard", _started(tmp_path / "gone"), dict(os.environ))
    assert (event.what, "cannot be executed" in event.text) == ("note_failed", True)


def test_the_tags_that_a_user_gives_mlflow_are_kept() -> None:
    (text,) = run_tags({"MLFLOW_RUN_CONTEXT": '{"team": "a"}'}, job="j", attempt=2).values()
    assert json.loads(text) == {"team": "a", "epochzero.job": "j", "epochzero.attempt": "2"}
    assert run_tags({"MLFLOW_RUN_CONTEXT": "[3"}, job="j", attempt=2) == {}
    assert run_tags({"MLFLOW_RUN_CONTEXT": "3"}, job="j", attempt=2) == {}


def test_a_note_that_could_not_be_left_is_said_at_the_end(
    run: Run, kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tensorboard.py").write_text("raise ImportError('none here')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    words = ("--note", "tensorboard", "--", sys.executable, "-c", "raise KeyError('lr')")
    said = b"epochzero: the diagnosis was not added to tensorboard"
    assert said in run(*words).stderr
    assert said not in run("--quiet", *words).stderr


@pytest.mark.parametrize("tool", ["mlflow", "tensorboard"])
def test_a_failed_job_is_noted_where_it_logged(
    run: Run, kept: Kept, tmp_path: Path, tool: str
) -> None:
    pytest.importorskip(tool, reason="the note is written by the tool itself")
    logs = {"mlflow": MLFLOW_JOB, "tensorboard": TENSORBOARD_JOB.replace("sys.argv[1]", "'logs'")}
    (tmp_path / "train.py").write_text(f"{logs[tool]}\nraise ValueError('bad shapes')\n")
    done = run("--note", tool, "--", sys.executable, "train.py", cwd=tmp_path, timeout=200)
    assert done.returncode == 1
    assert "note_left" in kept.events, kept.events
    assert kept.events["note_left"].details["tool"] == tool


@pytest.mark.parametrize("rank", [0, 1])
def test_a_note_that_cannot_be_left_changes_nothing(
    run: Run, kept: Kept, tmp_path: Path, rank: int
) -> None:
    environment = {**os.environ, "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank)}
    words = ("--note", "tensorboard", "--", "sh", "-c", "exit 9")
    assert run(*words, cwd=tmp_path, env=environment).returncode == 9
    # The supervisor of one rank is enough.
    assert ("note_failed" in kept.events) == (rank == 0)


WANDB_JOB = """
import wandb
run = wandb.init(project="toys", mode="offline", notes="A toy.", tags=["small"])
run.log({"loss": 1.0})
raise SystemExit(1)
"""
WANDB_READ = """
import json, sys
from pathlib import Path
from google.protobuf.json_format import MessageToDict
from wandb.proto.wandb_internal_pb2 import Record
from epochzero.run.notes.child.wandb_note import records_in
found = []
for file in sorted(Path("wandb").glob("offline-run-*/run-*.wandb")):
    for data in records_in(file.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        found.append(MessageToDict(record))
print(json.dumps(found))
"""


def test_a_run_of_wandb_gets_configuration_tag_and_text(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the note is written by W&B itself")
    started = _started(tmp_path)
    silent = {**os.environ, "WANDB_SILENT": "true"}
    subprocess.run([sys.executable, "-c", WANDB_JOB], cwd=tmp_path, env=silent, check=False)

    event = _leave("wandb", started, dict(os.environ))

    assert event.what == "note_left", event
    read = [sys.executable, "-c", WANDB_READ]
    records = json.loads(subprocess.check_output(read, cwd=tmp_path, text=True))
    runs = [record["run"] for record in records if "run" in record]
    assert len({run["runId"] for run in runs}) == 1
    assert event.details.get("where") == f"run {runs[0]['runId']}"
    assert runs[-1]["notes"].startswith("A toy.")
    assert "CUDA out of memory" in runs[-1]["notes"]
    assert runs[-1]["tags"] == ["small", "epochzero:gpu_out_of_memory"]
    ends = [record["exit"].get("exitCode", 0) for record in records if "exit" in record]
    assert ends[-1] == 1
