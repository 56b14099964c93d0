"""All ranks train on the same data."""

from epochzero.check.program.values import Constant
from epochzero.check.rule import Claims, JobView, Rule, argument, claim_at

_PARALLEL = "torch.nn.parallel.DistributedDataParallel"


def _check(view: JobView) -> Claims:
    if view.has_framework_loop or not any(call.name == _PARALLEL for call in view.calls):
        return
    text = "".join(module.text for module in view.modules)
    if "Sampler" in text or "ampler=" in text or view.does_anywhere("shard"):
        return
    for call in view.calls:
        shuffle = argument(call, 2, "shuffle")
        shuffles = isinstance(shuffle, Constant) and shuffle.value is True
        if call.name == "torch.utils.data.DataLoader" and shuffles and call.complete:
            yield claim_at(
                call.at,
                severity="warning",
                message="The model trains in parallel, but every rank loads the whole data set.",
                consequence="All ranks do the same work: an epoch takes as long as on one GPU",
            )
            return


RULE = Rule(
    category="framework_api_misuse",
    why="DistributedDataParallel averages gradients but does not divide the data. Without a "
    "distributed sampler, each rank reads the whole data set.",
    fix="Pass sampler=DistributedSampler(dataset) to the data loader, and remove the shuffle "
    "argument.",
    source="PyTorch documentation, torch.utils.data.distributed.DistributedSampler, with "
    "DistributedDataParallel",
    check=_check,
    examples="""
        import torch
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP
        from torch.utils.data import DataLoader

        model = DDP(nn.Linear(2, 2))
        data = [1]
        loader = DataLoader(data, batch_size=4, shuffle=True)  # <-
        ---- caught if
        -loader = DataLoader(data, batch_size=4, shuffle=True)  # <-
        +loader = DataLoader(data, 4, True)  # <-
        ---- ignored if
        -loader = DataLoader(data, batch_size=4, shuffle=True)
        +loader = DataLoader(data)
        ---- ignored if
        -from torch.utils.data import DataLoader
        +from torch.utils.data import DataLoader, DistributedSampler
        @@
        -loader = DataLoader(data, batch_size=4, shuffle=True)
        +loader = DataLoader(data, sampler=DistributedSampler(data))
        ----
        import torch
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP
        from torch.utils.data import DataLoader

        model = DDP(nn.Linear(2, 2))
        data = [1]


        def load():
            return DataLoader(data, shuffle=True)  # <-


        load()
        ----
        import torch
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP
        from torch.utils.data import DataLoader

        model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
        data = [1]
        loader = DataLoader(data, shuffle=True)  # <-
        ---- ignored if
        -model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
        +model = nn.Linear(2, 2)
    """,
)
