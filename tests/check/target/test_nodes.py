"""Partitions and node pools as targets, from the output of Slurm 22.05 and the JSON of Kubernetes nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from epochzero.check.target import read_target
from epochzero.check.target.model import Target
from epochzero.check.target.nodes import with_nodes
from epochzero.cli.target import command
from epochzero.errors import InputError

NODE = """\
NodeName={name} CoresPerSocket=1
   CPUAlloc=0 CPUEfctv={cpus} CPUTot=128 CPULoad=N/A
   Gres={gres}
   NodeAddr=127.0.0.1 NodeHostName=localhost
   OS=Linux 6.1 RealMemory={memory} AllocMem=0 FreeMem=N/A Sockets=64 Boards=1
   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions={pools}
   CfgTRES=cpu=64,mem=515000M,billing=64

"""
A100 = {"cpus": 64, "gres": "gpu:a100:4(S:0-1)", "memory": 515000, "state": "IDLE+CLOUD"}
NODES = "".join(
    NODE.format_map(node)
    for node in (
        {"name": "gpu1", "pools": "gpu,a100", **A100},
        {"name": "gpu2", "pools": "gpu,a100", **A100, "memory": 257000, "cpus": 60},
        {"name": "gpu3", "pools": "gpu,a100", **A100, "state": "IDLE+DRAIN"},
        {"name": "fat1", "pools": "gpu", **A100, "gres": "gpu:h100:8"},
        {"name": "cpu1", "pools": "batch", **A100, "gres": "(null)"},
    )
)
PARTITION = """\
PartitionName=a100
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   MaxNodes=UNLIMITED MaxTime=08:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   State=UP TotalCPUs=256 TotalNodes=4 SelectTypeParameters=NONE

"""
TABLE = """\
PARTITION TIMELIMIT NODES STATE CPUS MEMORY GRES NODELIST
a100* 8:00:00 3 idle 64+ 515000+ gpu:a100:4 gpu[1-3]
a100* 8:00:00 1 down* 32 190000 gpu:a100:2 gpu4
batch infinite 0 n/a 0 0 (null)
"""
LONG = """\
Sat Nov 28 16:13:10 2026
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
fat1           1      gpu*        idle 128   128:1:1 103000        0      1   (null) none
fat2           1      gpu*        mix  128   128:1:1 103000        0      1   (null) Not responding
"""


def pod_host(pool: str, labels: Mapping[str, str] = {}, gpus: int = 8) -> dict[str, Any]:
    """A node of a cluster with NVIDIA's GPU feature discovery."""
    return {
        "kind": "Node",
        "metadata": {"labels": {"cloud.google.com/gke-nodepool": pool, **labels}},
        "spec": {},
        "status": {
            "allocatable": {
                "cpu": "95500m",
                "memory": "1055760752Ki",
                "nvidia.com/gpu": str(gpus),
            },
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


FOUND = {
    "nvidia.com/gpu.product": "Tesla-T4",
    "nvidia.com/gpu.memory": "15360",
    "nvidia.com/gpu.compute.major": "7",
    "nvidia.com/gpu.compute.minor": "5",
    "nvidia.com/cuda.driver-version.full": "550.54.15",
    "nvidia.com/cuda.runtime.major": "12",
    "nvidia.com/cuda.runtime.minor": "4",
}


def test_a_partition_has_what_all_of_its_nodes_have() -> None:
    target = with_nodes(Target("x", shared_memory_bytes=1), PARTITION + NODES, "a100")
    assert (target.nodes, target.cpus, target.memory_bytes) == (2, 60, 257000 << 20)
    assert target.time_limit_s == 8 * 3600
    assert [gpu.model for gpu in target.gpus or ()] == ["NVIDIA A100-SXM4-40GB"] * 4
    assert target.notes == ("gpus: a100 is read as NVIDIA A100-SXM4-40GB, 40 GiB",)
    assert target.shared_memory_bytes is None
    assert with_nodes(Target("x"), NODES, "batch").gpus == ()
    different = with_nodes(Target("x"), NODES, "gpu")
    assert different.gpus is None
    assert "(a100, h100)" in different.notes[0]


def test_tables_of_sinfo() -> None:
    target = with_nodes(Target("x"), TABLE, "a100")
    assert (target.nodes, target.cpus, len(target.gpus or ())) == (3, 64, 4)
    assert (target.memory_bytes, target.time_limit_s) == (515000 << 20, 8 * 3600)
    # The column is six characters wide, and a wider number is cut off: 1030000 is shown as 103000.
    long = with_nodes(Target("x"), LONG)
    assert (long.nodes, long.cpus, long.memory_bytes, long.gpus) == (2, 128, None, None)


def test_a_node_pool_by_its_labels() -> None:
    items = [pod_host("t4", FOUND), pod_host("t4", FOUND), pod_host("l4", gpus=0)]
    items[1]["spec"]["unschedulable"] = True
    target = with_nodes(Target("x"), json.dumps({"items": items}), "t4")
    assert (target.nodes, target.cpus, target.memory_bytes) == (1, 95, 1055760752 << 10)
    assert (target.driver, target.cuda) == ("550.54.15", "12.4")
    gpu = (target.gpus or ())[0]
    assert (gpu.model, gpu.memory_bytes, gpu.capability) == ("Tesla-T4", 15360 << 20, (7, 5))
    assert with_nodes(Target("x"), json.dumps({"items": items}), "nvidia.com/gpu.product=Tesla-T4")
    named = pod_host("v", {"karpenter.k8s.aws/instance-gpu-name": "a10g"})
    assert [gpu.model for gpu in with_nodes(Target("x"), json.dumps(named)).gpus or ()][1:] == (
        ["NVIDIA A10G"] * 7
    )
    sliced = pod_host("mig", gpus=0)
    sliced["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] = "7"
    assert with_nodes(Target("x"), json.dumps(sliced)).gpus is None


@pytest.mark.parametrize(
    ("text", "pool", "message"),
    [
        (NODES, "", "a100, batch, gpu"),
        (NODES, "a10", "a100, batch, gpu"),
        ("{", "", "kubectl"),
        ('{"items":' + "[" * 100_000, "", "kubectl"),
        ('{"items": [{}]}', "", "kubectl"),
        ("", "", "no nodes"),
        (PARTITION, "", "no nodes"),
    ],
)
def test_what_cannot_be_read_is_an_error(text: str, pool: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_nodes(Target("x"), text, pool)


def test_a_node_that_cannot_be_used_does_not_limit_a_job() -> None:
    small = pod_host("a", FOUND, gpus=2)
    small["spec"]["unschedulable"] = True
    items = [pod_host("a", FOUND), small]
    target = with_nodes(Target("there"), json.dumps({"items": items}), "a")
    assert (target.nodes, len(target.gpus or ())) == (1, 8)
    only = with_nodes(Target("there"), json.dumps({"items": [small]}), "a")
    assert (only.nodes, len(only.gpus or ())) == (None, 2)
    small["spec"] = {}
    both = with_nodes(Target("there"), json.dumps({"items": items}), "a")
    assert (both.nodes, both.gpus) == (2, None)


@pytest.mark.parametrize(
    ("state", "note"), [("UP", ""), ("DOWN", "do not start"), ("DRAIN", "accepts no new jobs")]
)
def test_a_partition_that_runs_no_new_jobs_is_noted(state: str, note: str) -> None:
    text = f"PartitionName=gpu\n   MaxTime=02:00:00 State={state}\n\nNodeName=n1 CPUTot=8 RealMemory=64000 State=IDLE Partitions=gpu\n"
    notes = with_nodes(Target("there"), text).notes
    assert any(note in one for one in notes if "partition gpu" in one) == bool(note)


def test_the_command_combines_nodes_with_packages(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text('[[package]]\nname = "torch"\nversion = "2.4.0"\n')
    output = tmp_path / "gpu.toml"
    arguments = [
        "capture",
        "--nodes",
        "-",
        "--pool",
        "a100",
        "--packages",
        str(tmp_path / "uv.lock"),
    ]
    done = CliRunner().invoke(command, [*arguments, "-o", str(output)], input=PARTITION + NODES)
    assert done.exit_code == 0, done.output
    target = read_target(output)
    assert (target.name, target.nodes) == ("gpu", 2)
    assert set(target.distributions or ()) == {"torch"}
    assert CliRunner().invoke(command, ["capture", "--pool", "a100"]).exit_code == 2
