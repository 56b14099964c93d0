"""The job starts more data loader workers than it has CPU cores."""

from __future__ import annotations

from epochzero.check.job.model import Job
from epochzero.check.rule import Claims, JobView, Rule, Target, claim_at, examples
from epochzero.check.rules.world import number
from epochzero.check.view.torch_usage import argument


def _check(view: JobView) -> Claims:
    most = _for_each_process(view.job, view.target)
    if most is None:
        return
    for call in view.calls:
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


RULE = Rule(
    title="The job starts more data loader workers than it has CPU cores",
    category="timeout",
    why="Workers that share a core wait for each other, and the GPUs wait for them. A number "
    "that suits a workstation is far too high for a container with two cores. With one "
    "process per GPU, the number of workers multiplies.",
    fix="Use as many workers as each process has CPU cores.",
    source="PyTorch, torch/utils/data/dataloader.py, check_worker_number_rationality",
    check=_check,
    cases=examples("""
        from torch.utils.data import DataLoader

        loader = DataLoader([1, 2], num_workers=16)  # <-
        ==> run.sh <==
        ==> target.toml <==
        cpus = 8
        ---- ignored if
        -loader = DataLoader([1, 2], num_workers=16)
        +loader = DataLoader([1, 2], num_workers=8)
        ----
        $ torchrun --nproc_per_node=4 train.py
        from torch.utils.data import DataLoader

        loader = DataLoader([1, 2], num_workers=4)  # <-
        ==> run.sh <==
        ==> target.toml <==
        cpus = 8
        ----
        $ kubectl apply -f job.yaml
        from torch.utils.data import DataLoader

        loader = DataLoader([1, 2], num_workers=4)  # <-
        ==> run.sh <==
        ==> job.yaml <==
        apiVersion: batch/v1
        kind: Job
        metadata: {name: train}
        spec:
          template:
            spec:
              containers:
                - name: main
                  image: torch
                  command: [python, train.py]
                  resources: {limits: {cpu: '2'}}
        ----
        from torch.utils.data import DataLoader

        loader = DataLoader([1, 2], num_workers=64)
        ==> run.sh <==
        ----
        $ sbatch run.sh
        from torch.utils.data import DataLoader

        loader = DataLoader([1, 2], num_workers=4)
        ==> run.sh <==
        #!/bin/bash
        #SBATCH --cpus-per-task=4
        python train.py
        ==> target.toml <==
        cpus = 64
        ---- caught if
        -loader = DataLoader([1, 2], num_workers=4)
        +loader = DataLoader([1, 2], num_workers=8)  # <-
        ----
        import os
        from torch.utils.data import DataLoader

        DataLoader([1], num_workers=os.cpu_count())
        ==> target.toml <==
        cpus = 2
    """),
)
