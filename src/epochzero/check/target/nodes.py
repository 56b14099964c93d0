"""The nodes of a Slurm partition or a Kubernetes node pool as a target, from what the scheduler prints.

Accepted are ``kubectl get nodes -o json``, and ``scontrol show node``, ``scontrol show partition`` and ``sinfo`` (a table
with its header), alone or one after another. A job may run on each of the nodes: the target has what all of them have.

Sources: scontrol(1), sinfo(1), gres.conf(5); the labels of NVIDIA GPU feature discovery, GKE, EKS, AKS and Karpenter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from epochzero.check.launch.meanings import bytes_of, count_of, slurm_seconds
from epochzero.check.target.gpus import capability_of, gpus_of
from epochzero.check.target.model import GPU, NetworkAccess, Target
from epochzero.errors import InputError

_RECORD = re.compile(r"^(?=(?:NodeName|PartitionName)=)", re.MULTILINE)
_FIELD = re.compile(r"(\w+)=(\S*)")
_GRES = re.compile(r"(?:^|,)gpu(?::([^:(,]+?))?(?::(\d{1,4}))?(?=[(,]|$)")
_UNUSABLE = re.compile(r"(?:^|\+)(?:down|drain|drng|fail|inval|future|unk|error)", re.IGNORECASE)
_CLOSED = {
    "DOWN": "jobs can be submitted, but do not start",
    "DRAIN": "it accepts no new jobs",
    "INACTIVE": "it accepts no new jobs, and none start",
}
"""States of a Slurm partition in which a new job does not run: scontrol(1)."""
_POOL_LABELS = (
    "agentpool", "kubernetes.azure.com/agentpool", "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "karpenter.sh/nodepool",
)  # fmt: skip
_GPU_LABELS = (
    "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name", "amd.com/gpu.product-name",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Equal nodes, or what a partition says of its nodes; None where it is not known.

    Attributes:
        pools: names of the partitions or node pools.
        count: number of usable nodes; None for a partition.
        cpus, memory_bytes, time_limit_s: of a job on one of them.
        gpus: of one of them.
        gpu_name: as the scheduler names them.
        driver, cuda: of their GPUs.
        closed: why a partition runs no new jobs; empty if it does.
    """

    pools: frozenset[str]
    count: int | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    time_limit_s: float | None = None
    gpus: tuple[GPU, ...] | None = None
    gpu_name: str = ""
    driver: str = ""
    cuda: str = ""
    closed: str = ""


def with_nodes(target: Target, text: str, pool: str = "") -> Target:
    """The target with the resources of the nodes instead of its own.

    Args:
        target: what is installed.
        text: output of the scheduler.
        pool: partition, node pool, or label (``key=value``); empty if the output describes only one.

    Raises:
        InputError: the text has another form, or the pool is missing or unknown.
    """
    found = list(_kubernetes(text) if text.lstrip().startswith("{") else _slurm(text))
    if not any(nodes.count is not None for nodes in found):
        raise InputError(
            "no nodes in the output: neither scontrol show node, sinfo nor kubectl get nodes -o json"
        )
    pools = sorted({name for nodes in found for name in nodes.pools if "=" not in name})
    if pool:
        found = [nodes for nodes in found if pool in nodes.pools]
    if (len(pools) > 1 and not pool) or not found:
        raise InputError(f"--pool must name one of: {', '.join(pools) or 'no pool has a name'}")
    # A drained or cordoned node does not limit a job, unless there is no other.
    each = [nodes for nodes in found if nodes.count] or [n for n in found if n.count is not None]
    gpus, note = _common_gpus(each)
    notes = [*target.notes, *note]
    count = sum(nodes.count or 0 for nodes in each)
    if not count:
        notes.append("nodes: none can be used now")
    notes += [f"nodes: partition {nodes.closed}" for nodes in found if nodes.closed]
    return replace(
        target,
        gpus=gpus,
        driver=_same({nodes.driver for nodes in each}),
        cuda=_same({nodes.cuda for nodes in each}),
        nodes=count or None,
        cpus=_least(nodes.cpus for nodes in each),
        memory_bytes=_least(nodes.memory_bytes for nodes in each),
        time_limit_s=_least(nodes.time_limit_s for nodes in found if nodes.time_limit_s),
        shared_memory_bytes=None,
        processes=None,
        open_files=None,
        ports=None,
        network=NetworkAccess(),
        notes=tuple(notes),
    )


def only_installed(target: Target) -> Target:
    """What of a target is installed in a Python environment, for nodes that share its file system."""
    return Target(
        target.name,
        python=target.python,
        distributions=target.distributions,
        api=target.api,
        cuda_of_torch=target.cuda_of_torch,
        gpu_architectures=target.gpu_architectures,
    )


def _common_gpus(each: Sequence[_Nodes]) -> tuple[tuple[GPU, ...] | None, Iterable[str]]:
    """The GPUs that every node has, None if they are not known, and why."""
    kinds = {nodes.gpu_name for nodes in each}
    if len(kinds) > 1:
        named = ", ".join(sorted(kind or "none" for kind in kinds))
        return None, [f"gpus: the nodes have different ones ({named}); --pool selects nodes"]
    listed = [nodes.gpus for nodes in each if nodes.gpus is not None]
    if len(listed) < len(each):
        return None, [
            f"gpus: {kinds.pop() or 'their type'} is not known; describe them in [[gpus]]"
        ]
    if len({len(gpus) for gpus in listed}) > 1:
        return None, ["gpus: the nodes have different numbers of them; --pool selects nodes"]
    gpus, name = listed[0], kinds.pop()
    if gpus and gpus[0].model != name:
        return gpus, [f"gpus: {name} is read as {gpus[0].model}, {gpus[0].memory_bytes >> 30} GiB"]
    return gpus, []


def _least(values: Iterable[Any]) -> Any:
    known = list(values)
    return None if None in known else min(known, default=None)


def _same(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else ""


def _named_gpus(name: str, count: int) -> tuple[GPU, ...] | None:
    if not count:
        return ()
    try:
        return gpus_of(f"{count} x {name}") if name else None
    except InputError:
        return None


# -- Slurm -------------------------------------------------------------------------------------


def _slurm(text: str) -> Iterator[_Nodes]:
    for record in _RECORD.split(text):
        fields: dict[str, str] = dict(
            reversed(_FIELD.findall(record))
        )  # the first of a name counts
        if "PartitionName" in fields:
            limit = slurm_seconds(fields.get("MaxTime", ""))
            name, state = fields["PartitionName"], fields.get("State", "")
            closed = f"{name} is {state}: {_CLOSED[state]}" if state in _CLOSED else ""
            yield _Nodes(frozenset({name}), time_limit_s=limit, closed=closed)
        elif "NodeName" in fields:
            cpus = fields.get("CPUEfctv", fields.get("CPUTot", ""))
            yield _slurm_nodes(
                fields.get("Partitions", ""), "1", fields.get("State", ""), cpus,
                fields.get("RealMemory", ""), fields.get("Gres", ""), "",
            )  # fmt: skip
    header: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if "PARTITION" in words:
            header = words
        elif header and len(words) >= len(header):
            row = dict(zip(header, words, strict=False))
            if "S:C:T" in row and len(row.get("MEMORY", "")) > 5:
                del row["MEMORY"]  # cut off at six characters
            yield _slurm_nodes(
                row["PARTITION"].rstrip("*"), row.get("NODES", "1"), row.get("STATE", ""),
                row.get("CPUS", ""), row.get("MEMORY", ""), row.get("GRES"), row.get("TIMELIMIT", ""),
            )  # fmt: skip


def _slurm_nodes(
    pools: str, count: str, state: str, cpus: str, memory: str, gres: str | None, limit: str
) -> _Nodes:
    """Nodes as Slurm describes them: memory in MB, ``+`` behind the least of different values."""
    listed = _GRES.findall(gres or "")
    name = " and ".join(sorted({kind for kind, _ in listed})) if listed else ""
    total = sum(int(number or 1) for _, number in listed)
    if count == "0":
        return _Nodes(frozenset(pools.split(",")), time_limit_s=slurm_seconds(limit))
    usable = 0 if _UNUSABLE.search(state) else count_of(count) or 1
    return _Nodes(
        frozenset(pools.split(",")),
        usable,
        count_of(cpus.rstrip("+")),
        bytes_of(memory.rstrip("+"), "m"),
        slurm_seconds(limit),
        None if gres is None else _named_gpus(name, total),
        name or ("untyped GPUs" if total else ""),
    )


# -- Kubernetes --------------------------------------------------------------------------------


def _kubernetes(text: str) -> Iterator[_Nodes]:
    try:
        content = json.loads(text)
        for node in content.get("items", [content]):
            if node.get("kind", "Node") == "Node":
                yield _kubernetes_node(node["metadata"].get("labels", {}), node)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"not the output of kubectl get nodes -o json: {error}") from error


def _kubernetes_node(labels: Mapping[str, str], node: Mapping[str, Any]) -> _Nodes:
    has = node["status"]["allocatable"]
    total = sum(int(has[key]) for key in has if key in ("nvidia.com/gpu", "amd.com/gpu"))
    sliced = [key for key in has if "/mig-" in key and has[key] != "0"]
    name = next((labels[key] for key in _GPU_LABELS if key in labels), "untyped GPUs")
    name = sliced[0] if sliced else name if total else ""
    ready = all(
        value["status"] == "True"
        for value in node["status"].get("conditions", ())
        if value["type"] == "Ready"
    )
    cpus = str(has["cpu"])
    return _Nodes(
        frozenset(
            {labels[key] for key in _POOL_LABELS if key in labels}
            | {f"{key}={value}" for key, value in labels.items()}
        ),
        int(ready and not node.get("spec", {}).get("unschedulable", False)),
        int(cpus[:-1]) // 1000 if cpus.endswith("m") else count_of(cpus),
        bytes_of(str(has["memory"]), decimal=True),
        None,
        None if sliced else _labelled_gpus(labels, name, total),
        name,
        _version(labels, "nvidia.com/cuda.driver", ("major", "minor", "rev")),
        _version(labels, "nvidia.com/cuda.runtime", ("major", "minor")),
    )


def _labelled_gpus(labels: Mapping[str, str], name: str, total: int) -> tuple[GPU, ...] | None:
    """The GPUs with the memory and capability of their labels, otherwise those of this name."""
    memory = count_of(labels.get("nvidia.com/gpu.memory", ""))
    known = [labels.get(f"nvidia.com/gpu.compute.{part}", "") for part in ("major", "minor")]
    if total and memory and all(known):
        return (GPU(name, memory << 20, capability_of(".".join(known))),) * total
    return _named_gpus(name, total)


def _version(labels: Mapping[str, str], prefix: str, parts: Sequence[str]) -> str:
    """The version that one label has, or one label for each part."""
    values = [labels.get(f"{prefix}.{part}", "") for part in parts]
    return labels.get(f"{prefix}-version.full") or (".".join(values) if all(values) else "")
