"""A port that no process may use, or that a second launcher of the job takes too."""

from __future__ import annotations

from collections.abc import Iterable

from epochzero.check.findings import Finding
from epochzero.check.program.model import Program
from epochzero.check.rules.base import Case, Rule
from epochzero.check.rules.world import said_at, said_text
from epochzero.check.target.model import Target

__all__ = ["RULE"]

_PORT = ("--master_port", "--master-port", "--main_process_port")
_ENDPOINT = ("--rdzv_endpoint", "--rdzv-endpoint")


def _check(program: Program, target: Target) -> Iterable[Finding]:
    job = program.job
    port = said_text(job, *_PORT)
    names: tuple[str, ...] = _PORT
    if port is None:
        endpoint, names = said_text(job, *_ENDPOINT) or "", _ENDPOINT
        port = endpoint.rpartition(":")[2] if endpoint.count(":") == 1 else None
    if port is None:
        port, names = job.environment.get("MASTER_PORT"), ("MASTER_PORT",)
    if not port or not port.isascii() or not port.lstrip("-").isdigit():
        return
    if not 0 <= int(port) < 65536:
        yield Finding(
            "port-taken-or-fixed",
            "error",
            "illegal_argument",
            "initialization",
            said_at(job, *names),
            f"{port} is no port: ports go from 0 to 65535.",
            "The rendezvous fails with an invalid port",
            "Give a free port above 1023, such as 29500.",
        )
    elif 0 < int(port) < 1024 and target.user is not None and target.user.uid:
        yield Finding(
            "port-taken-or-fixed",
            "error",
            "permission_denied",
            "initialization",
            said_at(job, *names),
            f"Port {port} is below 1024, and the job does not run as root.",
            "PermissionError: [Errno 13] Permission denied, when the first process listens",
            "Give a free port above 1023, such as 29500.",
        )


RULE = Rule(
    id="port-taken-or-fixed",
    title="The port at which the processes meet cannot be used",
    category="illegal_argument",
    why="Ports are computed from job numbers and leave the range, or are small numbers that only "
    "root may listen at.",
    fix="Give a free port above 1023.",
    source="bind(2) and ip(7); pytorch/pytorch issue 85604 on ports of torchrun",
    check=_check,
    catches=(
        Case(
            {"train.py": ""},
            command=("torchrun", "--master_port=129500", "train.py"),
            path="<command>",
            line=0,
        ),
        Case(
            {"run.sh": "set -e\nexport MASTER_PORT=293400\npython train.py\n", "train.py": ""},
            command=("bash", "run.sh"),
            path="run.sh",
            line=2,
        ),
    ),
    leaves=(
        Case({"train.py": ""}, command=("torchrun", "--master_port=29500", "train.py")),
        Case({"train.py": ""}, command=("torchrun", "--master_port=$PORT", "train.py")),
        Case({"train.py": ""}, command=("torchrun", "--master_port=0", "train.py")),
    ),
)
