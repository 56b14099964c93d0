"""Gradients are not reset between training steps."""

from epochzero.check.rule import Claims, JobView, Rule, claim_at
from epochzero.check.view.torch_usage import backward_calls


def _check(view: JobView) -> Claims:
    clears = view.does_anywhere("zero_grad", "grad", "apply_gradients")
    if not view.training_steps or clears or view.has_framework_loop:
        return
    for call in backward_calls(view.program):
        if call.at.loop:
            yield claim_at(
                call.at,
                severity="warning",
                message="Each step adds its gradients to those of all earlier steps: zero_grad is "
                "never called.",
                consequence="The loss does not decrease, or becomes NaN",
            )
            return


RULE = Rule(
    category="framework_api_misuse",
    why="backward() adds the new gradients to the existing gradients. Without zero_grad, each step "
    "also uses the gradients of all earlier steps. No error occurs, and the GPU time is wasted.",
    fix="Call optimizer.zero_grad() before backward().",
    source="PyTorch documentation, torch.optim, taking an optimization step; Zhang et al., ICSE 2020, "
    "section 5.3",
    check=_check,
    examples="""
        import torch
        from torch import nn

        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(100):
            loss = model(torch.rand(8, 4)).mean()
            loss.backward()  # <-
            optimizer.step()
        ---- caught if
        -for step in range(100):
        +while True:
        ---- ignored if
             loss = model(torch.rand(8, 4)).mean()
        +    model.zero_grad()
        ---- ignored if
             loss = model(torch.rand(8, 4)).mean()
        +    for p in model.parameters():
        +        p.grad = None
        ---- ignored if
        +from accelerate import Accelerator
         import torch
        ----
        from engine import epoch
        import torch
        from torch import nn

        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        epoch(model, optimizer)
        ==> engine.py <==
        import torch


        def epoch(model, optimizer):
            for step in range(5):
                loss = model(torch.rand(2, 4)).sum()
                loss.backward()  # <-
                optimizer.step()
    """,
)
