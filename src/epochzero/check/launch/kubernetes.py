"""Kubernetes manifests: pods, and objects with pod templates (Job, PyTorchJob, MPIJob, RayJob), TrainJob.

Values are read from the composed nodes, which have line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import yaml

from epochzero.check.launch.containers import SHARED_MEMORY_BYTES, Container
from epochzero.check.launch.meanings import bytes_of, count_of, with_source
from epochzero.check.launch.model import Job, ScriptProblem, Word
from epochzero.check.launch.nodes import entries, entry, listed, place_of, scalars, written
from epochzero.check.launch.setting import Script

MOST_NODES = 20_000
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)")
_SETS = {
    "PyTorchJob": ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"),
    "TFJob": ("TF_CONFIG",),
    "Job": ("JOB_COMPLETION_INDEX",),
    "TrainJob": (
        "JOB_COMPLETION_INDEX",
        "PET_NNODES",
        "PET_NPROC_PER_NODE",
        "PET_NODE_RANK",
        "PET_MASTER_ADDR",
        "PET_MASTER_PORT",
    ),
}
"""Variables that the controller of a kind sets in its pods."""


def containers_of(script: Script, draft: Job) -> Iterator[Container]:
    """Yield the containers of all documents of a manifest, each command once.

    Args:
        script: the manifest.
        draft: the job so far.

    Raises:
        yaml.YAMLError: it is not valid YAML.
    """
    seen: set[tuple[object, ...]] = set()
    for document in yaml.compose_all(script.text, Loader=yaml.SafeLoader):
        kind = written(entry(document, "kind"))
        if not kind:
            continue
        reader = _Manifest(script, document, kind)
        for container in reader.containers(draft):
            # The same command in several replicas is one job.
            same = (kind, tuple(word.text for word in container.words), container.text)
            if same not in seen:
                seen.add(same)
                yield container


class _Manifest:
    """One document of a manifest."""

    def __init__(self, script: Script, document: yaml.Node, kind: str) -> None:
        self.script, self.document, self.kind = script, document, kind

    def word(self, node: yaml.Node, environment: Mapping[str, str | None]) -> Word:
        """A scalar as a word, with ``$(NAME)`` replaced like Kubernetes does."""
        text = written(node)
        names = [name for name in _REFERENCE.findall(text) if name in environment]
        known = all(environment[name] is not None for name in names)
        if known:
            text = _REFERENCE.sub(
                lambda f: environment.get(f[1]) or f[0] * (f[1] not in environment), text
            )
        return Word(text, place_of(self.script, node), known)

    def containers(self, draft: Job) -> Iterator[Container]:
        """The containers, with the settings of the whole document."""
        draft = self.of_whole(draft)
        for spec in self.specs():
            for container in listed(entry(spec, "containers")):
                yield self.container(container, spec, draft)
        # A TrainJob changes the container of a runtime, which is another object of the cluster.
        trainer = entry(self.document, "spec", "trainer")
        if self.kind == "TrainJob" and trainer is not None:
            yield self.container(trainer, trainer, draft)
        entrypoint = entry(self.document, "spec", "entrypoint")
        if self.kind.startswith("Ray") and isinstance(entrypoint, yaml.ScalarNode):
            place = place_of(self.script, entrypoint)
            yield Container(draft, place, (), Word(entrypoint.value, place))

    def of_whole(self, draft: Job) -> Job:
        """Apply the number of pods and the time limit."""
        named = dict.fromkeys(_SETS.get(self.kind, ()))
        draft = replace(
            draft,
            launchers=(*draft.launchers, self.kind),
            environment={**draft.environment, **named},
        ).with_allocation(nodes=self.nodes())
        names = ("nprocPerNode", "slotsPerWorker", "numProcPerNode")
        each = next(filter(None, map(self.find, names)), None)
        if each is not None and self.kind != "MPIJob":
            draft = draft.with_allocation(processes_per_node=count_of(written(each)))
            draft = with_source(
                draft, self.kind, "nprocPerNode", Word(written(each), place_of(self.script, each))
            )
        limit = self.find("activeDeadlineSeconds")
        if limit is not None:
            seconds = count_of(written(limit))
            word = Word(written(limit), place_of(self.script, limit))
            draft = draft.with_allocation(time_limit_s=None if seconds is None else float(seconds))
            draft = with_source(draft, self.kind, "activeDeadlineSeconds", word)
        return draft

    def nodes(self) -> int | None:
        """The number of pods that work together; None if unknown."""
        if self.kind == "Pod":
            return 1
        spec = entry(self.document, "spec")
        if self.kind == "Job":
            if written(entry(spec, "completionMode")) != "Indexed":
                return 1  # Its pods take work from a queue and may share a machine.
            return count_of(written(entry(spec, "parallelism")) or "1")
        if self.kind == "TrainJob":
            return count_of(written(entry(spec, "trainer", "numNodes")))
        roles = [role for key, role in entries(spec) if key.endswith("ReplicaSpecs")]
        if not roles:
            return None
        counts = [
            count_of(written(entry(role, "replicas")) or "1")
            for name, role in entries(roles[0])
            if not (self.kind == "MPIJob" and name == "Launcher")
        ]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def find(self, name: str) -> yaml.Node | None:
        """The first entry of this name, anywhere in the document."""
        return next((value for key, value in self.walk(self.document) if key == name), None)

    def walk(self, node: yaml.Node) -> Iterator[tuple[str, yaml.Node]]:
        """Yield entries below a node, outer ones first, up to a limit, since aliases can make a document large."""
        waiting, passed = [node], 0
        while waiting and passed < MOST_NODES:
            current = waiting.pop(0)
            passed += 1
            for key, value in entries(current):
                yield key, value
                waiting.append(value)
            waiting.extend(listed(current))

    def specs(self) -> Iterator[yaml.Node]:
        """Yield the pod specifications."""
        for key, value in self.walk(self.document):
            if key == "spec" and listed(entry(value, "containers")):
                yield value

    def container(self, node: yaml.Node, spec: yaml.Node, draft: Job) -> Container:
        """What a container runs, and its resources."""
        environment = dict(draft.environment)
        for variable in listed(entry(node, "env")):
            value = entry(variable, "value")
            value_ = None if value is None else self.word(value, environment)
            environment[written(entry(variable, "name"))] = (
                value_.text if value_ and value_.known else None
            )
        environment.pop("", None)
        draft = replace(draft, environment=environment, container=written(entry(node, "image")))
        draft = self.volumes(node, spec, self.resources(node, draft))
        parts = [*listed(entry(node, "command")), *listed(entry(node, "args"))]
        words = tuple(self.word(part, environment) for part in parts)
        folder = entry(node, "workingDir")
        if not listed(entry(node, "command")):
            # Without a command, arguments go to the entry point of the image.
            words = words if words and words[0].text.endswith(("python", "python3")) else ()
        started = None if folder is None else self.word(folder, environment)
        return Container(draft, place_of(self.script, node), words, None, started)

    def resources(self, node: yaml.Node, draft: Job) -> Job:
        """GPUs, processors and memory."""
        limits = entry(node, "resources", "limits") or entry(node, "resourcesPerNode", "limits")
        gpus = 0
        for key, text, row in scalars(limits):
            word = Word(text, self.script.place(row))
            if key.endswith("/gpu") or key.startswith("nvidia.com/mig"):
                gpus += count_of(text) or 0
                draft = with_source(draft, self.kind, key, word)
            elif key == "cpu":
                draft = draft.with_allocation(cpus=count_of(text))
                draft = with_source(draft, self.kind, key, word)
            elif key == "memory":
                draft = draft.with_allocation(memory_bytes=bytes_of(text, decimal=True))
                draft = with_source(draft, self.kind, key, word)
        return draft.with_allocation(gpus_per_node=gpus) if gpus else draft

    def volumes(self, node: yaml.Node, spec: yaml.Node, draft: Job) -> Job:
        """The volumes that the container mounts."""
        volumes = {written(entry(v, "name")): v for v in listed(entry(spec, "volumes"))}
        mounts, modes = dict(draft.mounts), set(draft.read_only)
        shared = None if written(entry(spec, "hostIPC")) == "true" else SHARED_MEMORY_BYTES
        claims = [
            entry(claim, "metadata", "name") for claim in listed(self.find("volumeClaimTemplates"))
        ]
        declared = {*volumes, *map(written, claims)}
        for mount in listed(entry(node, "volumeMounts")):
            inside = written(entry(mount, "mountPath"))
            name = entry(mount, "name")
            volume = volumes.get(written(name))
            if name is not None and written(name) not in declared:
                draft = self.with_undeclared_volume(draft, name)
            if inside.rstrip("/") == "/dev/shm":
                limit = written(entry(volume, "emptyDir", "sizeLimit"))
                # Without a limit it may use half of the node's memory.
                shared = bytes_of(limit, decimal=True) or draft.allocation.memory_bytes
                continue
            mounts[inside] = _outside(volume)
            if written(entry(mount, "readOnly")).lower() == "true":
                modes.add(inside)
        mounts.pop("", None)
        draft = replace(draft, mounts=mounts, read_only=frozenset(modes))
        return draft.with_allocation(shared_memory_bytes=shared)

    def with_undeclared_volume(self, draft: Job, name: yaml.Node) -> Job:
        """The job with a mounted volume that its pod does not declare, which the API server rejects."""
        value_ = f"The container mounts the volume {written(name)}, which the pod does not declare."
        problem = ScriptProblem("volume", place_of(self.script, name), value_, certain=True)
        return draft.with_script(problems=(*draft.launch_script.problems, problem))


def _outside(volume: yaml.Node | None) -> str:
    """The source of a volume: a directory of the node, or its kind and name."""
    for key, value in entries(volume):
        if key == "hostPath":
            return written(entry(value, "path"))
        if key != "name":
            names = ("claimName", "name", "secretName", "server", "path")
            named = [written(entry(value, name)) for name in names]
            return ":".join([key, *(name for name in named if name)])
    return ""
