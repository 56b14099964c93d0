"""A distributed sampler uses the same order in every epoch."""

from epochzero.check.program.values import Constant
from epochzero.check.rule import Claims, JobView, Rule, argument, claim_at

_SAMPLERS = frozenset(
    {"torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler"}
)


def _check(view: JobView) -> Claims:
    if not view.training_steps or view.has_framework_loop or view.does_anywhere("set_epoch"):
        return
    for call in view.calls:
        shuffle = argument(call, 3, "shuffle")
        is_ordered = isinstance(shuffle, Constant) and not shuffle.value
        if call.name in _SAMPLERS and not is_ordered and call.complete:
            yield claim_at(
                call.at,
                severity="warning",
                message="The job never calls set_epoch of the sampler.",
                consequence="The order of the data is the same in every epoch",
            )
            return


RULE = Rule(
    category="framework_api_misuse",
    why="The sampler computes the order of the data from its seed and its epoch number. Without "
    "set_epoch, this number stays 0 and the order never changes.",
    fix="Call sampler.set_epoch(epoch) at the start of each epoch.",
    source="PyTorch documentation, torch.utils.data.distributed.DistributedSampler, warning on set_epoch",
    check=_check,
    examples="""
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, DistributedSampler

        model, data = nn.Linear(2, 2), torch.rand(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
        sampler = DistributedSampler(data)  # <-
        for epoch in range(3):
            for x in DataLoader(data, sampler=sampler):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
        ---- caught if
        -sampler = DistributedSampler(data)  # <-
        +import torch.utils.data.distributed as d
        +sampler = d.DistributedSampler(data)  # <-
        ---- ignored if
         for epoch in range(3):
        +    sampler.set_epoch(epoch)
        ---- ignored if
        -sampler = DistributedSampler(data)
        +sampler = DistributedSampler(data, shuffle=False)
        ---- ignored if
        -for epoch in range(3):
        -    for x in DataLoader(data, sampler=sampler):
        -        optimizer.zero_grad()
        -        model(x).sum().backward()
        -        optimizer.step()
    """,
)
