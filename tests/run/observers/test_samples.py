"""Samples count what a real tree of processes uses; limits are those of its control group."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from epochzero.platform import process_status
from epochzero.run.observers.gpus import GpuReader
from epochzero.run.observers.samples import SampleWatcher, memory_left
from epochzero.run.process.usage import ProcessTree
from epochzero.run.records.clock import Clock
from epochzero.run.records.model import Sample
from tests.run.trees import SLEEPER, job, until


def sampled(watcher: SampleWatcher) -> Sample:
    (sample,) = watcher.tick()
    assert isinstance(sample, Sample)
    return sample


def test_a_sample_counts_the_whole_tree(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\nheld = bytearray(64 << 20)\n"
        f"children = [subprocess.Popen([sys.executable, '-c', {SLEEPER!r}]) for _ in range(3)]\n"
        "while True: pass"
    )
    with job(script) as child:
        watcher = SampleWatcher(tmp_path, {})
        watcher.started(child.pid, tmp_path, Clock())
        until(lambda: sampled(watcher).processes == 4)
        time.sleep(1)
        sample = sampled(watcher)
    assert 0 < sample.cpu_percent < 130
    assert 64 << 20 < sample.memory_bytes < 1 << 30
    assert sample.memory_available_bytes > 0
    assert sample.disk_free_bytes > 0
    assert sample.gpus == () or sample.gpus[0].memory_total_bytes > 0


def test_what_ended_children_wrote_is_kept(tmp_path: Path) -> None:
    writer = (
        f"f = open({str(tmp_path / 'written')!r}, 'wb'); f.write(bytes(8 << 20)); f.flush(); "
        "import os; os.fsync(f.fileno())"
    )
    script = (
        f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {writer!r}])\n"
        f"open({str(tmp_path / 'done')!r}, 'w').close()\ntime.sleep(60)"
    )
    with job(script) as child:
        watcher = SampleWatcher(tmp_path, {})
        watcher.started(child.pid, tmp_path, Clock())
        until((tmp_path / "done").exists)
        written = sampled(watcher).written_bytes
        if written == 0:
            pytest.skip("this file system's writes are not counted (a memory file system)")
        assert written >= 8 << 20
        assert sampled(watcher).written_bytes >= written


def test_a_tree_that_is_gone_has_no_sample(tmp_path: Path) -> None:
    with job("pass") as child:
        watcher = SampleWatcher(tmp_path, {})
        watcher.started(child.pid, tmp_path, Clock())
        child.wait()
        assert list(watcher.tick()) == []


def test_an_ended_child_that_nobody_waited_for_tells_how_it_ended() -> None:
    with job("raise SystemExit(3)") as child:

        def ended() -> bool:
            process = process_status(child.pid)
            return process is not None and process.state == "Z"

        until(ended)
        process = process_status(child.pid)
        assert process is not None
        assert os.waitstatus_to_exitcode(process.status) == 3


def test_orphans_belong_to_the_tree(tmp_path: Path) -> None:
    """As under the guard, the parent of the job adopts what the job leaves."""
    daemon = (
        "import os, pathlib, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n"
        f"while not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)"
    )
    with job(daemon) as child:
        tree = ProcessTree(child.pid)
        until(lambda: len(tree.read()) == 2)
        (tmp_path / "go").touch()
        child.wait()
        (orphan,) = tree.read()
        assert orphan.parent == os.getpid()


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory.max": "max\n", "memory.current": "5\n"}, 1 << 20),
        ({"memory.max": "1000\n", "memory.current": "400\n", "memory.stat": ""}, 600),
        (
            {"memory.max": "1000", "memory.current": "900", "memory.stat": "inactive_file 300\n"},
            400,
        ),
        ({"memory.limit_in_bytes": "1000", "memory.usage_in_bytes": "1200"}, 0),
    ],
)
def test_memory_that_is_left_is_that_of_the_control_group(
    tmp_path: Path, files: dict[str, str], left: int
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 4096 kB\nMemAvailable:  1024 kB\n")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert memory_left([tmp_path], tmp_path) == left


@pytest.mark.skipif(importlib.util.find_spec("pynvml") is None, reason="needs nvidia-ml-py")
def test_gpus_are_those_that_the_job_sees() -> None:
    found = GpuReader({}).read()
    if not found:
        pytest.skip("no GPU here")
    assert all(0 <= gpu.utilization <= 100 for gpu in found)
    assert all(0 < gpu.memory_bytes <= gpu.memory_total_bytes for gpu in found)
    assert GpuReader({"CUDA_VISIBLE_DEVICES": "0"}).read()[0].index == 0
    assert GpuReader({"CUDA_VISIBLE_DEVICES": ""}).read() == ()


@pytest.mark.parametrize("old_driver", [False, True])
def test_memory_in_use_leaves_out_what_the_driver_reserves(
    old_driver: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NVMLError(Exception):
        pass

    def missing(*_: object) -> object:
        raise NVMLError

    def memory(_: object, version: int = 0) -> SimpleNamespace:
        if version and old_driver:
            raise NVMLError
        return SimpleNamespace(total=100, used=30 if version else 35)

    library = SimpleNamespace(
        NVMLError=NVMLError,
        NVML_TEMPERATURE_GPU=0,
        NVML_CLOCK_SM=1,
        nvmlMemory_v2=2,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetMemoryInfo=memory,
        nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=50),
        nvmlDeviceGetTemperature=missing,
        nvmlDeviceGetPowerUsage=missing,
        nvmlDeviceGetClockInfo=missing,
        nvmlDeviceGetCurrentClocksThrottleReasons=missing,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    (gpu,) = GpuReader({}).read()
    assert (gpu.memory_bytes, gpu.memory_total_bytes) == (35 if old_driver else 30, 100)


def test_no_gpu_is_no_error() -> None:
    assert isinstance(GpuReader({"CUDA_VISIBLE_DEVICES": "0,x,-1"}).read(), tuple)
