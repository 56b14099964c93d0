"""Which failures are about files of a network file system, or another resource that jobs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochzero.diagnose import Diagnosis, diagnose
from epochzero.run.records.model import Start
from epochzero.run.retry import local_files, shared_resource, shared_storage

MOUNTS = """\
22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
31 22 0:28 / /shared rw,relatime shared:9 - nfs4 store:/export rw,vers=4.2
32 31 8:1 / /shared/scratch rw,relatime shared:10 - xfs /dev/sdb1 rw
33 22 0:29 / /mnt/with\\040space rw - lustre mds@tcp:/l rw
34 22 0:30 / /bucket rw - fuse.gcsfuse bucket rw
35 22 0:31 / /home/u/archive rw - fuse.archivemount a rw
"""
STARTED = Start("j", 1, "n", ("python", "train.py"), "/jobs", "node1", "u", 1, 1000.0)


def diagnosed(folder: Path, line: str, file: str = "/job/train.py") -> Diagnosis:
    log = folder / "job.log"
    log.write_text(
        f'Traceback (most recent call last):\n  File "{file}", line 1, in <module>\n    f()\n{line}\n'
    )
    return diagnose(log)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/shared/data/train.bin", "store:/export"),
        ("/shared/scratch/train.bin", ""),
        ("/sharedness/train.bin", ""),
        ("/bucket/data/train.bin", "bucket"),
        ("/home/u/archive/train.bin", ""),
        ("/data/train.bin", ""),
    ],
)
def test_the_mount_of_the_path_in_the_message_decides(
    tmp_path: Path, path: str, source: str
) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    found = diagnosed(tmp_path, f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'")

    assert shared_storage(found, STARTED, tmp_path / "mounts") == source


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'trian.csv'", "/jobs/trian.csv"),
        ("python: can't open file '/jobs/trian.py': [Errno 2] No such file", "/jobs/trian.py"),
        ("PermissionError: [Errno 13] Permission denied: '/etc/labels.csv'", "/etc/labels.csv"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/shared/a.csv'", ""),
        ("ModuleNotFoundError: No module named 'bitsandbytes'", "/job/train.py"),
        ("ConnectionRefusedError: [Errno 111] Connection refused", ""),
    ],
)
def test_what_only_this_node_can_change(tmp_path: Path, line: str, path: str) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)

    assert local_files(diagnosed(tmp_path, line), STARTED, tmp_path / "mounts") == path
    assert local_files(diagnosed(tmp_path, line), STARTED, tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("line", "resource"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'out/model.pt'", ""),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/jobs/out/model.pt'", ""),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/none/a/b.csv'", "/none"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '../none/b.csv'", "/none"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu_fault"),
        ("RuntimeError: CUDA error: device-side assert triggered", ""),
        ("KeyError: 'lr'", ""),
        ("ModuleNotFoundError: No module named 'bitsandbytes'", ""),
    ],
)
def test_what_other_jobs_can_fail_of_as_well(tmp_path: Path, line: str, resource: str) -> None:
    assert shared_resource(diagnosed(tmp_path, line), STARTED) == resource


def test_the_subject_of_the_message_is_what_jobs_share(tmp_path: Path) -> None:
    lost = diagnosed(tmp_path, "OSError: [Errno 116] Stale file handle: 'a'")
    worked = [f"What failed had worked for {time}." for time in ("12 min", "3 h")]
    assert shared_resource(lost, STARTED, "The file server had forgotten the file.")
    assert len({shared_resource(lost, STARTED, subject) for subject in worked}) == 1


def test_a_module_of_a_shared_environment_counts(tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    module = "/shared/envs/dl/lib/python3.11/site-packages/transformers/__init__.py"
    found = diagnosed(tmp_path, "ImportError: cannot import name 'x' from 'y'", module)

    assert shared_storage(found, STARTED, tmp_path / "mounts") == "store:/export"


def test_what_another_node_saw_is_not_judged_by_the_mounts_here(tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    line = "FileNotFoundError: [Errno 2] No such file or directory: '/shared/x/y'"
    through_srun = Start("j", 1, "n", ("srun", "python", "t.py"), "/", "node1", "u", 1, 1000.0)

    assert not shared_storage(diagnosed(tmp_path, line), through_srun, tmp_path / "mounts")


def test_it_is_unknown_without_a_list_of_mounts(tmp_path: Path) -> None:
    line = "FileNotFoundError: [Errno 2] No such file or directory: '/shared/x/y'"

    assert shared_storage(diagnosed(tmp_path, line), STARTED, tmp_path / "none") == ""
