"""The training saves a checkpoint in every step."""

from __future__ import annotations

import ast
import re

from epochzero.check.paths.accesses import accesses_of
from epochzero.check.paths.sizes import enclosing_loops
from epochzero.check.rule import Claims, JobView, Rule, claim_at, examples

_BATCHES = re.compile(r"loader|batch|dataloader|train_dl|train_iter", re.IGNORECASE)
_EPOCHS = re.compile(r"epoch", re.IGNORECASE)


def _check(view: JobView) -> Claims:
    for call in view.calls:
        if not call.at.loop or "Trainer" in call.name or "Callback" in call.name:
            continue
        saves = [
            one for one in accesses_of(call, {}) if one.use.checkpoint and one.does == "writes"
        ]
        if not saves:
            continue
        loops = [
            loop
            for place in (*call.at.via, call.at.place)
            for loop in enclosing_loops(view.program, place)
        ]
        if not loops or any(conditions for _, conditions in loops) or not _is_step(loops[-1][0]):
            continue
        yield claim_at(
            call.at,
            severity="warning",
            message=f"{saves[0].function} saves a checkpoint in every iteration of the loop over "
            f"{ast.unparse(loops[-1][0].iter)}.",
            consequence="The job would spend most of its time on saving, and a new file name for each "
            "checkpoint fills the storage.",
            fix="Save once per epoch, or every few hundred steps: if step % 500 == 0.",
        )


def _is_step(loop: ast.For) -> bool:
    """Whether a loop iterates over batches, judged by its names."""
    names = ast.unparse(loop.target)
    return bool(_BATCHES.search(ast.unparse(loop.iter))) and not _EPOCHS.search(names)


RULE = Rule(
    title="The training saves a checkpoint in every step",
    category="storage_full",
    why="Saving takes longer than a step, so the GPUs wait. With a new file name for each "
    "checkpoint the storage fills up.",
    fix="Save once per epoch, or every few hundred steps.",
    source="documentation of transformers: save_steps=500; mlfoundations/open_lm #154",
    check=_check,
    cases=examples("""
        import torch
        model = torch.nn.Linear(2, 2)
        loader = [torch.zeros(4, 2)] * 8
        for batch in loader:
            model(batch)
            torch.save(model.state_dict(), 'last.pt')  # <-
        ---- ignored if
        -    torch.save(model.state_dict(), 'last.pt')
        +torch.save(model.state_dict(), 'last.pt')
        ----
        import torch
        model = torch.nn.Linear(2, 2)
        loader = [torch.zeros(4, 2)] * 8
        for step, batch in enumerate(loader):
            model(batch)
            torch.save(model, f'step{step}.pt')  # <-
        ----
        import torch
        model = torch.nn.Linear(2, 2)
        loader = [torch.zeros(4, 2)] * 8


        def save():
            torch.save(model.state_dict(), 'last.pt')  # <-


        for batch in loader:
            save()
        ----
        import torch
        model = torch.nn.Linear(2, 2)
        loader = [torch.zeros(4, 2)] * 8
        for epoch in range(3):
            for batch in loader:
                model(batch)
            torch.save(model.state_dict(), 'last.pt')
        ---- caught if
        -    torch.save(model.state_dict(), 'last.pt')
        +        torch.save(model.state_dict(), 'last.pt')  # <-
        ----
        import torch
        model = torch.nn.Linear(2, 2)
        loader = [torch.zeros(4, 2)] * 8
        for step, batch in enumerate(loader):
            if step % 500 == 0:
                torch.save(model.state_dict(), 'last.pt')
        ----
        import torch
        model = torch.nn.Linear(2, 2)
        loader = [torch.zeros(4, 2)] * 8
        for epoch in range(9):
            torch.save(model.state_dict(), 'last.pt')
    """),
)
