"""This machine as a target: parts that fail cost only themselves, and secrets stay where they are."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

import pytest

from epochzero.check.target import capture, parse_target, this_machine, write_target
from epochzero.check.target import system as system_
from epochzero.check.target.model import Mount
from epochzero.check.target.system import limits, mounts_of, ports, without_secrets
from epochzero.check.target.torch_build import TorchBuild, torch_build
from epochzero.errors import InputError

GIB = 1 << 30


def test_this_machine() -> None:
    found = this_machine({"PATH": os.environ["PATH"], "HOME": "/home/x"})
    assert found.here
    assert found.python == sys.version_info[:3]
    assert found.distributions is not None
    assert found.distributions["click"].modules == ("click",)
    assert found.user is not None
    assert found.user.uid == os.getuid()
    assert found.working_folder == os.getcwd()
    assert found.mounts
    assert found.memory_bytes


def test_the_ports_at_which_something_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port in (ports() or ())
    assert port not in (ports() or ())


def test_without_the_tables_of_the_kernel_no_port_is_known(tmp_path: Path) -> None:
    assert ports(tmp_path) is None


def test_what_is_captured_can_be_read_on_another_machine() -> None:
    found = this_machine({"PATH": os.environ["PATH"]}, libraries=["click"])
    read = parse_target(write_target(found))
    assert not read.here
    assert read.distributions == found.distributions
    assert read.api == found.api
    assert "Option" in read.api["click"]


def test_what_lies_in_folders_is_listed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "train").mkdir(parents=True)
    (data / "train" / "0.bin").write_text("")
    (data / "many").mkdir()
    for number in range(system_.MOST_IN_FOLDER + 1):
        (data / "many" / f"{number}").touch()
    found = capture({}, name="c", libraries=(), folders=[data])
    assert found.files[str(data / "train" / "0.bin")]
    assert set(found.listed) == {str(data), str(data / "train")}
    assert parse_target(write_target(found)).listed == found.listed
    with pytest.raises(InputError, match="none cannot be listed"):
        capture({}, name="c", libraries=(), folders=[tmp_path / "none"])


def test_a_part_that_fails_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such thing here")

    for part in ("gpus", "mounts", "user", "limits", "shared_libraries", "shared_memory"):
        monkeypatch.setattr(system_, part, broken)
    found = this_machine({})
    assert found.gpus is None
    assert found.mounts is None
    assert found.user is None
    assert found.memory_bytes is None
    assert any(note.startswith("mounts: ") and "no such thing here" in note for note in found.notes)


def test_secrets_are_left_out() -> None:
    found = without_secrets(
        {"HF_TOKEN": "x", "AWS_SECRET_ACCESS_KEY": "x", "WANDB_API_KEY": "x", "DB_PASSWORD": "x",
         "PROXY": "http://me:word@host:80", "PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0"}
    )  # fmt: skip
    assert {name for name, value in found.items() if value} == {"PATH", "CUDA_VISIBLE_DEVICES"}
    assert len(found) == 7


def test_gpus_are_asked_of_nvidia_smi(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\n"
        'if [ -n "$1" ]; then echo "NVIDIA H100 80GB HBM3, 81559, 9.0, 550.54.15"\n'
        'else echo "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |"; fi\n'
    )
    program.chmod(0o755)
    found = system_.gpus({"PATH": str(tmp_path)})
    assert found.gpus is not None
    assert [(gpu.model, gpu.capability) for gpu in found.gpus] == [
        ("NVIDIA H100 80GB HBM3", (9, 0))
    ]
    assert (found.driver, found.cuda) == ("550.54.15", "12.4")


def test_an_nvidia_smi_that_fails_leaves_the_gpus_unknown(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    found = system_.gpus({"PATH": str(tmp_path)})
    assert found.gpus is None
    assert found.notes


def put(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.mark.parametrize(
    ("files", "memory"),
    [
        ({"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": f"{2 * GIB}\n"}, 2 * GIB),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": f"{GIB}\n",
          "sys/fs/cgroup/a/b/memory.max": "max\n"}, GIB),
        ({"proc/self/cgroup": "4:memory:/job\n",
          "sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{GIB}\n"}, GIB),
        ({"proc/self/cgroup": "4:memory:/elsewhere\n",
          "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n"}, GIB),
        ({"proc/self/cgroup": "4:memory:/\n",
          "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8 * GIB),
        ({}, 8 * GIB),
    ],
)  # fmt: skip
def test_limits_of_control_groups(tmp_path: Path, files: dict[str, str], memory: int) -> None:
    put(tmp_path, {"proc/meminfo": f"MemTotal:       {8 * GIB >> 10} kB\n", **files})
    assert limits(tmp_path).memory_bytes == memory


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/cpu.max": "50000 100000\n"}, 1),
        ({"proc/self/cgroup": "4:cpu,cpuacct:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n",
          "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/cpu.max": "max 100000\n"}, None),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_processors_that_a_job_may_use(
    tmp_path: Path, files: dict[str, str], cpus: int | None
) -> None:
    put(tmp_path, files)
    assert limits(tmp_path).cpus == (cpus or len(os.sched_getaffinity(0)))


def test_mounts() -> None:
    text = (
        "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "2 1 0:5 / /proc rw - proc proc rw\n"
        "3 1 0:9 / /data\\040sets ro,nosuid shared:1 - nfs4 host:/x rw\n"
        "4 1 0:9 / /model rw - nfs4 host:/x ro\n"
        "5 1 0:9 / /model rw - tmpfs tmpfs rw\n"
        "damaged\n"
    )
    assert mounts_of(text) == (Mount("/"), Mount("/data sets", writable=False), Mount("/model"))


def library(sections: dict[bytes, bytes]) -> bytes:
    """A 64-bit ELF file with these sections."""
    names = b"\0" + b"".join(name + b"\0" for name in (*sections, b".shstrtab"))
    content = {**sections, b".shstrtab": names}
    body, headers = b"", bytes(64)
    for name, data in content.items():
        at = 64 + len(body)
        headers += struct.pack("<I20xQQ24x", names.index(b"\0" + name) + 1, at, len(data))
        body += data
    ident = b"\x7fELF\x02\x01\x01" + bytes(33)
    shape = struct.pack("<Q10xHHH", 64 + len(body), 64, len(content) + 1, len(content))
    return ident + shape + body + headers


ARCHITECTURES = b"\0sm_80 sm_90 compute_90\0"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (library({b".text": b"x" * 999, b".rodata": b"sm_1" + ARCHITECTURES}), True),
        (library({b".rodata.str1.1": b"x", b".rodata.str1.8": ARCHITECTURES}), True),
        # Across the border of two pieces.
        (library({b".rodata": b"x" * ((1 << 20) - 9) + ARCHITECTURES}), True),
        (library({b".nv_fatbin": ARCHITECTURES, b".rodata": b"x"}), False),
        (library({b".rodata": ARCHITECTURES})[:-1], False),
        (library({b".rodata": ARCHITECTURES})[:40], False),
        (library({}), False),
        (ARCHITECTURES, False),
        (b"\x7fELF\x01" + library({b".rodata": ARCHITECTURES})[5:], False),
        (b"", False),
    ],
)
def test_architectures_are_a_constant_of_the_library(
    tmp_path: Path, content: bytes, found: bool
) -> None:
    put(tmp_path, {"torch/version.py": "cuda = '12.4'\n"})
    (tmp_path / "torch/lib").mkdir()
    (tmp_path / "torch/lib/libtorch_cuda.so").write_bytes(content)
    architectures = ("sm_80", "sm_90", "compute_90") if found else None
    assert torch_build([str(tmp_path)]) == TorchBuild("12.4", architectures)


@pytest.mark.skipif(sys.platform != "linux", reason="counts what is read in /proc")
def test_of_a_large_library_only_the_constants_are_read(tmp_path: Path) -> None:
    put(tmp_path, {"torch/version.py": "cuda = '12.4'\n"})
    (tmp_path / "torch/lib").mkdir()
    kernels = 4 << 30
    small = library({b".rodata": ARCHITECTURES})
    headers = int.from_bytes(small[40:48], "little")
    with (tmp_path / "torch/lib/libtorch_cuda.so").open("wb") as stream:
        stream.write(small[:40] + (headers + kernels).to_bytes(8, "little") + small[48:headers])
        stream.seek(kernels, os.SEEK_CUR)
        stream.write(small[headers:])

    def characters_read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = characters_read()
    assert torch_build([str(tmp_path)]) == TorchBuild("12.4", ("sm_80", "sm_90", "compute_90"))
    assert characters_read() - before < 1 << 20


def test_the_build_of_torch_is_read(tmp_path: Path) -> None:
    put(tmp_path, {"torch/version.py": "cuda: str = '12.4'\nhip = None\n"})
    assert torch_build([str(tmp_path)]) == TorchBuild("12.4", None)
    (tmp_path / "torch/lib").mkdir()
    text = b"\0sm_8\0\0sm_80 sm_90 compute_90\0x"
    (tmp_path / "torch/lib/libtorch_cuda.so").write_bytes(library({b".rodata": text}))
    assert torch_build([str(tmp_path)]) == TorchBuild("12.4", ("sm_80", "sm_90", "compute_90"))
    put(tmp_path, {"torch/version.py": "cuda = None\n"})
    assert torch_build([str(tmp_path)]) == TorchBuild("", ())
    put(tmp_path, {"torch/version.py": "cuda = None\nhip = '6.0'\n"})
    assert torch_build([str(tmp_path)]) is None
    assert torch_build([str(tmp_path / "nowhere")]) is None
