"""The optimizer steps without gradients."""

from epochzero.check.rule import Claims, JobView, Rule, claim_at


def _check(view: JobView) -> Claims:
    gives = view.does_anywhere("backward", "grad", "autograd", "manual_backward", "func")
    gives |= any(one.module in ("torch.autograd", "torch.func") for one in view.program.imports)
    if gives or view.has_framework_loop:
        return
    for call in view.training_steps:
        if not call.arguments and not call.keywords:
            yield claim_at(
                call.at,
                severity="warning",
                message="The optimizer steps, but the job never calls backward().",
                consequence="The model never changes: the loss is the same in all epochs",
            )
            return


RULE = Rule(
    category="framework_api_misuse",
    why="The step() method silently skips parameters without gradients. The training completes, "
    "but the model learns nothing.",
    fix="Call loss.backward() before optimizer.step().",
    source="PyTorch documentation, torch.optim.Optimizer.step and autograd",
    check=_check,
    examples="""
        import torch
        from torch import nn

        model = nn.Linear(4, 1)
        optimizer = torch.optim.Adam(model.parameters())
        for step in range(100):
            loss = model(torch.rand(8, 4)).mean()
            optimizer.zero_grad()
            optimizer.step()  # <-
        ---- caught if
             optimizer.step()  # <-
        +    print(loss.item())
        ---- caught if
        -for step in range(100):
        +while True:
        @@
        -    optimizer.zero_grad()
        ---- ignored if
             optimizer.zero_grad()
        +    loss.backward()
        ---- ignored if
             optimizer.zero_grad()
        +    for p in model.parameters():
        +        p.grad = p
        ---- ignored if
        -    optimizer.step()
        +    optimizer.step(lambda: loss)
        ---- ignored if
         from torch import nn
        +from torch.autograd import backward
        ---- ignored if
         from torch import nn
        +from torch.distributed.pipelining import ScheduleGPipe
        ---- ignored if
        -for step in range(100):
        -    loss = model(torch.rand(8, 4)).mean()
        -    optimizer.zero_grad()
        -    optimizer.step()
        +optimizer.step()
        ----
        import torch
        from torch import nn

        model = nn.Linear(4, 1)
        optimizer = torch.optim.Adam(model.parameters())


        def train(model, optimizer):
            for step in range(10):
                optimizer.zero_grad()
                loss = model(torch.rand(8, 4)).sum()
                optimizer.step()  # <-


        train(model, optimizer)
    """,
)
