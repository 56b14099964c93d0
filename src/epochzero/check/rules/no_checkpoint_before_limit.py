"""A long training saves nothing."""

from epochzero.check.rule import Claims, JobView, Rule, claim_at

LONG_S = 3600.0
"""A shorter time limit indicates a trial run."""


def _check(view: JobView) -> Claims:
    limit = view.job.allocation.time_limit_s
    if limit is None or limit < LONG_S or not view.training_steps or view.has_framework_loop:
        return
    # A function that saves may have any name: save, save_checkpoint, dump, upload.
    text = "".join(module.text for module in view.modules).lower()
    if any(word in text for word in ("save", "dump", "checkpoint", "upload", "pickle", "export")):
        return
    yield claim_at(
        view.training_steps[0].at,
        severity="warning",
        message=f"The job may run for {limit / 3600:.1f} hours but saves no checkpoint.",
        consequence="The trained weights are lost at the time limit, when the node fails, and at the end",
    )


RULE = Rule(
    category="interrupted",
    why="The scheduler terminates a job at the time limit, regardless of the job's progress. A "
    "job without a checkpoint restarts from the beginning.",
    fix="Save the model, the optimizer and the epoch number after every epoch, and resume from "
    "this checkpoint.",
    source="sbatch(1), --time and --signal; PyTorch tutorials, Saving and loading a general checkpoint",
    check=_check,
    examples="""
        $ sbatch run.sh
        import torch

        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
        for epoch in range(900):
            optimizer.zero_grad()
            model(torch.rand(4, 2)).sum().backward()
            optimizer.step()  # <-
        ==> run.sh <==
        #!/bin/bash
        #SBATCH --time=12:00:00
        python train.py
        ---- caught if
             optimizer.step()  # <-
        +print(model)
        @@
        -#SBATCH --time=12:00:00
        +#SBATCH --time=2-00:00:00
        ---- ignored if
             optimizer.step()
        +    torch.save(model.state_dict(), 'last.pt')
        ---- ignored if
        -#SBATCH --time=12:00:00
        +#SBATCH --time=00:20:00
        ---- ignored if
        -$ sbatch run.sh
        @@
        -==> run.sh <==
        -#!/bin/bash
        -#SBATCH --time=12:00:00
        -python train.py
    """,
)
