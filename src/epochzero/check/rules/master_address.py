"""Several nodes rendezvous at an address that is local to each node."""

from epochzero.check.rule import Claims, JobView, Program, Rule, claim_at_start
from epochzero.check.rules.world import said_at, said_text

_ENDPOINT = ("--rdzv_endpoint", "--rdzv-endpoint")
_ADDRESS = ("--master_addr", "--master-addr", "--main_process_ip")
_HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def _check(view: JobView) -> Claims:
    job = view.job
    if (
        job.allocation.nodes is None
        or job.allocation.nodes < 2
        or not set(job.launchers) & {"torchrun", "accelerate"}
    ):
        return
    address = said_text(job, *_ENDPOINT, *_ADDRESS)
    host = _host(address or "")
    if address is not None and host in _HERE:
        yield claim_at_start(
            said_at(job, *_ENDPOINT, *_ADDRESS),
            message=f"{job.allocation.nodes} nodes rendezvous at {address}, which is a different machine on each of "
            "them.",
            consequence="Each node waits for the others at its own address, until the rendezvous times "
            "out",
            fix="Pass the address of the first node, such as that of $(scontrol show hostnames "
            "$SLURM_JOB_NODELIST | head -n 1).",
        )
    elif address is None and "torchrun" in job.launchers and _can_tell(view.program):
        yield claim_at_start(
            said_at(job, "--nnodes"),
            message=f"The job has {job.allocation.nodes} nodes, but torchrun gets no rendezvous address.",
            consequence="torchrun uses 127.0.0.1: each node waits for itself, until the rendezvous times "
            "out",
            fix="Pass --rdzv_backend=c10d --rdzv_endpoint=HOST:PORT with the address of the "
            "first node.",
        )


def _can_tell(program: Program) -> bool:
    """Whether nothing else may set the rendezvous address of torchrun."""
    elsewhere = ("PET_RDZV_ENDPOINT", "PET_MASTER_ADDR")
    return not any(name in program.job.environment for name in elsewhere) and "kubernetes" not in (
        launcher.lower() for launcher in program.job.launchers
    )


def _host(endpoint: str) -> str:
    if endpoint.startswith("["):
        return endpoint[1:].partition("]")[0]
    return endpoint.rpartition(":")[0] if endpoint.count(":") == 1 else endpoint


RULE = Rule(
    category="communication_failure",
    why="A command that works on one node may fail on several nodes. The name localhost refers to "
    "a different machine on each node. All nodes wait until the rendezvous times out.",
    fix="Pass the address of the first node.",
    source="torchrun's documentation, section 'Multi-node': --rdzv-endpoint",
    check=_check,
    examples="""
        $ torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=localhost:29500 train.py  # <-
        ==> train.py <==
        ----
        $ torchrun --nnodes=2 --nproc_per_node=8 train.py  # <-
        ==> train.py <==
        ----
        $ torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=node1:29500 train.py
        ==> train.py <==
        ----
        $ torchrun --nnodes=1 --master_addr=localhost train.py
        ==> train.py <==
    """,
)
