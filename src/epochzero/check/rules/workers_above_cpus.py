"""The job starts more data loader workers than it has CPU cores."""

from __future__ import annotations

from epochzero.check.job.model import Job
from epochzero.check.rules.base import Case, Claims, Program, Rule, Target, claim_at
from epochzero.check.rules.world import number
from epochzero.check.torch_usage import argument


def _check(program: Program, target: Target) -> Claims:
    most = _for_each_process(program.job, target)
    if most is None:
        return
    for call in program.calls:
        workers = number(argument(call, 5, "num_workers"))
        if call.name != "torch.utils.data.DataLoader" or workers is None or workers <= most[0]:
            continue
        yield claim_at(
            call.at,
            severity="warning",
            message=f"The loader starts {workers} workers, but a process has {most[0]} CPU "
            f"core{'s' * (most[0] != 1)}: {most[1]}.",
            consequence="UserWarning: This DataLoader will create more worker processes than is suggested: "
            "it might get slow or even freeze",
            fix=f"Use num_workers={most[0]}, or request more CPU cores.",
        )
        return


def _for_each_process(job: Job, target: Target) -> tuple[int, str] | None:
    """The number of CPU cores of each process, and its source; None if it is not known."""
    if job.cpus is not None:
        return max(1, job.cpus), "the job requests no more"
    if target.cpus is None:
        return None
    processes = job.processes_per_node or 1
    shared = f", which {processes} processes share" * (processes > 1)
    return max(1, target.cpus // processes), f"a node of the target has {target.cpus}{shared}"


def _job(workers: int, script: str = "") -> dict[str, str]:
    return {
        "train.py": "from torch.utils.data import DataLoader\n\n"
        f"loader = DataLoader([1, 2], num_workers={workers})\n",
        "run.sh": script,
    }


_BATCH = "#!/bin/bash\n#SBATCH --cpus-per-task=4\npython train.py\n"
_POD = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n  template:\n    spec:\n      containers:\n"
    "        - name: main\n          image: torch\n          command: [python, train.py]\n"
    "          resources: {limits: {cpu: '2'}}\n"
)

RULE = Rule(
    title="The job starts more data loader workers than it has CPU cores",
    category="timeout",
    why="Workers that share a core wait for each other, and the GPUs wait for them. A number "
    "that suits a workstation is far too high for a container with two cores. With one "
    "process per GPU, the number of workers multiplies.",
    fix="Use as many workers as each process has CPU cores.",
    source="PyTorch, torch/utils/data/dataloader.py, check_worker_number_rationality",
    check=_check,
    catches=(
        Case(_job(16), target="cpus = 8\n", line=3),
        Case(_job(4), target="cpus = 8\n", command=("torchrun", "--nproc_per_node=4", "train.py"), line=3),
        Case(_job(8, _BATCH), target="cpus = 64\n", command=("sbatch", "run.sh"), line=3),
        Case({**_job(4), "job.yaml": _POD}, command=("kubectl", "apply", "-f", "job.yaml"), line=3),
    ),
    leaves=(
        Case(_job(8), target="cpus = 8\n"),
        Case(_job(64)),
        Case(_job(4, _BATCH), target="cpus = 64\n", command=("sbatch", "run.sh")),
        Case({"train.py": "import os\nfrom torch.utils.data import DataLoader\n\n"
              "DataLoader([1], num_workers=os.cpu_count())\n"}, target="cpus = 2\n"),
    ),
)  # fmt: skip
