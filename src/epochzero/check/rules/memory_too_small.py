"""The memory limit is below what the libraries need."""

from epochzero.check.rule import Claims, JobView, Rule, Severity, claim_at_start
from epochzero.check.view.builds import first_import, wants_cuda

MIB = 1 << 20
IMPORT_BYTES = 220 * MIB
"""Resident memory after ``import torch``: 219 MiB measured with PyTorch 2.13 for CPUs on Linux."""
TRAINING_BYTES = 512 * MIB
"""Below it little is left for a model and its batches."""
CUDA_BYTES = 2048 * MIB
"""Host memory of a process that uses CUDA: context, kernels and pinned buffers take 1 to 3 GB."""
_OPTIONS = ("--mem", "memory", "--memory", "-m")


def _check(view: JobView) -> Claims:
    job = view.job
    asked = job.allocation.memory_bytes
    imported = first_import(view.program, "torch")
    if asked is None or imported is None:
        return
    processes = job.allocation.processes_per_node or 1
    each = asked // processes
    uses_gpus = bool(
        job.allocation.gpus or job.allocation.gpus_per_node or view.target.gpus
    ) and wants_cuda(view.program)
    certain = each < IMPORT_BYTES
    if not certain and each >= TRAINING_BYTES and not (uses_gpus and each <= CUDA_BYTES):
        return
    severity: Severity = "error" if certain and imported.at.certain else "warning"
    needs = "more than 2 GiB with CUDA" if uses_gpus else f"{TRAINING_BYTES // MIB} MiB or more"
    written_at = next(
        (job.argument_sources[name] for name in _OPTIONS if name in job.argument_sources), None
    )
    shared = f", {each // MIB} MiB for each of {processes} processes" if processes > 1 else ""
    yield claim_at_start(
        written_at.place if written_at else job.at,
        severity=severity,
        message=f"The job may use {asked // MIB} MiB of memory{shared}. Importing PyTorch takes "
        f"{IMPORT_BYTES // MIB} MiB, and training needs {needs}.",
        consequence="Killed: the kernel kills the process (OOMKilled, exit code 137)",
        fix=f"Ask for {needs} for each process, and add what the data loaders hold.",
    )


RULE = Rule(
    category="cpu_out_of_memory",
    why="A memory limit is often too low if it is intended for a web service or has the wrong "
    "unit (M instead of G). The kernel kills the process during imports or the first batches.",
    fix="Request the memory that the framework and the data need.",
    source="Kubernetes documentation, Assign Memory Resources: exceed a container's memory limit; "
    "sbatch(1), --mem; import measured with PyTorch 2.13",
    check=_check,
    examples="""
        $ kubectl apply -f job.yaml
        ==> job.yaml <==
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: main
            image: train
            command: ["python", "train.py"]
            resources:
              limits:
                memory: 200Mi  # <-
        ==> train.py <==
        import torch
        ----
        $ sbatch job.slurm
        ==> job.slurm <==
        #!/bin/bash
        #SBATCH --gres=gpu:1
        #SBATCH --mem=2G  # <-
        python train.py
        ==> train.py <==
        import torch

        model = torch.nn.Linear(2, 2).cuda()
        ---- ignored if
        -#SBATCH --mem=2G
        +#SBATCH --mem=32G
        ----
        $ sbatch job.slurm
        ==> job.slurm <==
        #!/bin/bash
        #SBATCH --mem=0
        python train.py
        ==> train.py <==
        import torch
        ---- ignored if
        -#SBATCH --mem=0
        +#SBATCH --mem=200M
        @@
        -import torch
        +print("no framework")
    """,
)
