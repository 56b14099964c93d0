"""A training job's trace, made by hand: a stack of like blocks, trained with Adam."""

from __future__ import annotations

from dataclasses import dataclass, field

from epochzero.check.dryrun.memory.trace import Alloc, AllocationSite, Event, Free, Mark, Trace

MIB = 1 << 20


@dataclass
class _Tape:
    events: list[Event] = field(default_factory=list)
    kinds: dict[int, str] = field(default_factory=dict)
    sites: list[AllocationSite] = field(default_factory=list)

    def alloc(self, size: int, kind: str, line: int, layer: str = "") -> int:
        site = AllocationSite("train.py", line, layer)
        if site not in self.sites:
            self.sites.append(site)
        number = len(self.kinds)
        self.kinds[number] = kind
        self.events.append(Alloc(number, size, self.sites.index(site)))
        return number

    def free(self, numbers: list[int]) -> None:
        self.events.extend(Free(number) for number in reversed(numbers))

    def mark(self, name: str) -> None:
        self.events.append(Mark(name))


def training(
    *, batch: int = 4, blocks: int = 4, parameter: int = 8 * MIB, steps: int = 2, transient: int = 1
) -> Trace:
    """Each block keeps two activations of ``3 * batch`` and ``batch`` MiB; gradients are freed."""
    tape = _Tape()
    for _ in range(blocks):
        tape.alloc(parameter, "parameter", 3)
    for step in range(1, steps + 1):
        tape.alloc(batch * MIB, "input", 5)
        activations = []
        for block in range(blocks):
            activations.append(tape.alloc(3 * batch * MIB, "activation", 7, f"h.{block}.mlp"))
            activations.append(tape.alloc(batch * MIB, "activation", 7, f"h.{block}"))
            activations.append(tape.alloc(batch * MIB, "activation", 7, f"h.{block}"))
            if step == 1 and block == 0:
                tape.mark("cublas")
        tape.mark("backward")
        gradients = []
        for block in range(blocks):
            gradients.append(tape.alloc(parameter, "gradient", 8))
            if step == 1 and block == 0:
                tape.mark("cublas backward")
            tape.free(activations[-3:])
            del activations[-3:]
        tape.mark("backward done")
        tape.mark("optimizer")
        if step == 1:
            for _ in range(2 * blocks):
                tape.alloc(parameter, "optimizer", 9)
        listed = [tape.alloc(parameter, "temporary", 9) for _ in range(transient * blocks)]
        tape.free(listed)
        tape.mark(f"step {step}")
        tape.free(gradients)
    return Trace(tuple(tape.events), tape.kinds, tuple(tape.sites))
