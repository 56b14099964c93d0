"""The launcher expects other nodes or GPUs than the batch system allocates."""

from epochzero.check.launch.model import Job
from epochzero.check.rule import Claims, JobView, Rule, claim_at_start
from epochzero.check.rules.world import said_at, said_text

_NNODES = ("torchrun --nnodes", "deepspeed --num_nodes", "accelerate --num_machines")
_PROCESSES = ("torchrun --nproc_per_node", "torchrun --nproc-per-node", "deepspeed --num_gpus")
_NODES = ("sbatch --nodes", "sbatch -N", "salloc --nodes", "srun --nodes")
_GPUS = ("sbatch --gres", "sbatch --gpus-per-node", "srun --gres", "srun --gpus-per-node")


def _check(view: JobView) -> Claims:
    job = view.job
    nodes, asked = said_text(job, *_NNODES), said_text(job, *_NODES)
    if _count(nodes) and _count(asked) and _count(nodes) > _count(asked):
        yield claim_at_start(
            said_at(job, *_NNODES),
            message=f"The launcher waits for {nodes} nodes, but the job requests {asked} from the "
            "batch system.",
            consequence="The launcher waits for nodes that never join, until the rendezvous times out",
            fix=f"Request {nodes} nodes, or set the launcher to {asked}.",
        )
    # By default torchrun runs on one node. The value may also be a variable with the right number.
    alone = _count(nodes) if nodes is not None else 1
    if "torchrun" in job.launchers and 0 < alone < _count(asked) and not _set_by_variables(job):
        yield claim_at_start(
            said_at(job, *_NODES),
            severity="warning",
            message=f"The job requests {asked} nodes, but torchrun is set to {alone}.",
            consequence="No error: each node trains by itself, as if it were the only one, or stays idle",
            fix=f"Pass --nnodes={asked} and a rendezvous address (--rdzv_endpoint) to torchrun, "
            "and start it with srun.",
        )
    each, gpus = _count(said_text(job, *_PROCESSES)), job.allocation.gpus_per_node
    if (
        each
        and gpus
        and said_text(job, *_GPUS)
        and each < gpus
        and job.allocation.processes_per_node == each
    ):
        yield claim_at_start(
            said_at(job, *_PROCESSES),
            category="gpu_fault",
            severity="warning",
            message=f"The job starts {each} processes on each node, but requests {gpus} GPUs.",
            consequence=f"No error: {gpus - each} GPUs of each node would stay idle",
            fix=f"Start {gpus} processes on each node, or request {each} GPUs.",
        )


def _set_by_variables(job: Job) -> bool:
    """Whether torchrun may read the number of nodes from its variables."""
    return any(name.startswith("PET_") for name in job.environment)


def _count(text: str | None) -> int:
    """A count; 0 if it is missing or not written as a number."""
    return int(text) if text and text.isascii() and text.isdigit() else 0


RULE = Rule(
    category="communication_failure",
    why="The numbers of nodes and GPUs are set twice: in the options of the batch system and in "
    "the launcher's arguments. Often only one of the two places is updated.",
    fix="Set the launcher's arguments from the batch system's variables, such as $SLURM_NNODES.",
    source="torchrun's documentation, --nnodes; sbatch(1), --nodes and --gres",
    check=_check,
    examples="""
        $ sbatch run.sh
        ==> train.py <==
        ==> run.sh <==
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=node0:29500 train.py  # <-
        ---- ignored if
        -#SBATCH --nodes=1
        +#SBATCH --nodes=2
        ---- ignored if
        -srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=node0:29500 train.py
        +srun torchrun --nnodes=$N --nproc_per_node=gpu --rdzv_backend=c10d --rdzv_endpoint=node0:29500 train.py
        ---- caught if
        -#SBATCH --nodes=1
        -#SBATCH --gres=gpu:4
        +#SBATCH --nodes=2
        +#SBATCH --gres=gpu:8
        ---- caught if
        -#SBATCH --nodes=1
        -#SBATCH --gres=gpu:4
        -srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=node0:29500 train.py  # <-
        +#SBATCH --nodes=2  # <-
        +srun torchrun --nproc_per_node=4 train.py
    """,
)
