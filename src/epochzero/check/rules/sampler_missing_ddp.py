"""All ranks train on the same data."""

from __future__ import annotations

from epochzero.check.program.values import Constant
from epochzero.check.rules.base import Case, Claims, Program, Rule, Target, claim_at
from epochzero.check.torch_usage import argument, does_anywhere, has_framework_loop

_PARALLEL = "torch.nn.parallel.DistributedDataParallel"


def _check(program: Program, target: Target) -> Claims:
    if has_framework_loop(program) or not any(one.name == _PARALLEL for one in program.calls):
        return
    text = "".join(module.text for module in program.modules.values())
    if "Sampler" in text or "ampler=" in text or does_anywhere(program, "shard"):
        return
    for call in program.calls:
        shuffle = argument(call, 2, "shuffle")
        shuffles = isinstance(shuffle, Constant) and shuffle.value is True
        if call.name == "torch.utils.data.DataLoader" and shuffles and call.complete:
            yield claim_at(
                call.at,
                severity="warning",
                message="The model trains in parallel, but every rank loads the whole data set.",
                consequence="All ranks do the same work: an epoch takes as long as on one GPU",
                fix="Pass sampler=DistributedSampler(dataset) to the loader, and remove shuffle.",
            )
            return


_HEAD = (
    "import torch\nfrom torch import nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
    "from torch.utils.data import DataLoader, DistributedSampler\n\nmodel = DDP(nn.Linear(2, 2))\ndata = [1]\n"
)
_PLAIN = _HEAD.replace(", DistributedSampler", "")

RULE = Rule(
    title="All ranks train on the same data",
    category="framework_api_misuse",
    why="DistributedDataParallel averages gradients but does not divide the data. Without a "
    "distributed sampler each rank reads all of it.",
    fix="Use DistributedSampler.",
    source="PyTorch documentation, torch.utils.data.distributed.DistributedSampler, with "
    "DistributedDataParallel",
    check=_check,
    catches=(
        Case({"train.py": f"{_PLAIN}loader = DataLoader(data, batch_size=4, shuffle=True)\n"}, line=8),
        Case({"train.py": f"{_PLAIN}loader = DataLoader(data, 4, True)\n"}, line=8),
        Case({"train.py": f"{_PLAIN}\n\ndef load():\n    return DataLoader(data, shuffle=True)\n\n\nload()\n"},
             line=11),
        Case({"train.py": _PLAIN.replace("DDP(nn", "nn.parallel.DistributedDataParallel(nn")
              + "loader = DataLoader(data, shuffle=True)\n"}, line=8),
    ),
    leaves=(
        Case({"train.py": f"{_HEAD}loader = DataLoader(data, sampler=DistributedSampler(data))\n"}),
        Case({"train.py": f"{_PLAIN}loader = DataLoader(data)\n"}),
        Case({"train.py": _PLAIN.replace("DDP(nn.Linear(2, 2))", "nn.Linear(2, 2)")
              + "loader = DataLoader(data, shuffle=True)\n"}),
        Case({"train.py": f"import accelerate\n{_PLAIN}loader = DataLoader(data, shuffle=True)\n"}),
    ),
)  # fmt: skip
