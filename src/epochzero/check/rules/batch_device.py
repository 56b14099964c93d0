"""A batch stays on the CPU while the model is on a GPU."""

from __future__ import annotations

import ast

from epochzero.check.builds import device_named
from epochzero.check.code import code_of
from epochzero.check.loops import before_forward
from epochzero.check.models import Model, Models
from epochzero.check.origins import Origins, unwrapped
from epochzero.check.program.events import Called
from epochzero.check.program.values import Instance, Value
from epochzero.check.rules.base import (
    Claims,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
    examples,
    guarded,
)

_LOADER = "torch.utils.data.DataLoader"
_SCATTER = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "fully_shard", "prepare",
            "setup", "setup_module", "initialize", "set_default_device", "set_default_tensor_type",
            "dispatch_model")  # fmt: skip
"""Calls that move batches themselves, or create tensors on the GPU."""
_WEIGHTED = (
    "Linear",
    "Conv",
    "Embedding",
    "Norm",
    "LSTM",
    "GRU",
    "RNN",
    "Transformer",
    "Multihead",
)
"""Parts of the names of layers that have parameters."""
_SHAPING = frozenset(["contiguous", "flatten", "float", "long", "permute", "reshape", "squeeze", "transpose",
                      "unsqueeze", "view"])  # fmt: skip
_GPU, _PERHAPS, _CPU = "GPU", "perhaps", "CPU"


def _check(program: Program, target: Target) -> Claims:
    if any(call.name.rpartition(".")[2] in _SCATTER for call in program.calls) or _moves_items(
        program
    ):
        return
    models, origins, reach = Models.of(program), Origins.of(program), Reach.of(program)
    reported = set()
    for at, call in enumerate(program.calls):
        model = _used(models, origins, call)
        if model is None or guarded(call.at, RuntimeError):
            continue
        where = before_forward(program, call.at)
        line = where.place.path, where.place.line
        if line in reported:
            continue
        device = _device(program, at, model, target)
        if device in (_GPU, _PERHAPS):
            reported.add(line)
            sure = device == _GPU and not _own_data(origins, call)
            yield claim_at(
                where,
                severity=reach.severity(call.at) if sure else "warning",
                message="The data loader returns the batch on the CPU, but the model is on the GPU.",
                consequence="RuntimeError: Expected all tensors to be on the same device, but found at least "
                "two devices, cuda:0 and cpu!",
                fix="Move the batch first: x, y = x.to(device), y.to(device).",
            )


def _used(models: Models, origins: Origins, call: Called) -> Model | None:
    """The model that a call passes an unmoved batch to, or whose output it compares with one."""
    if not call.name.endswith(".__call__") and not call.name.startswith("torch.nn.functional."):
        return None
    batches = [_is_batch(_unmoved(origins, one)) for one in call.arguments[:2]]
    if not any(batches):
        return None
    if batches[0]:
        return models.owner(call.receiver) if _has_weights(call) else None
    other = origins.maker(origins.before(call.arguments[0]))
    return models.owner(other.receiver) if other is not None and _has_weights(other) else None


def _has_weights(call: Called) -> bool:
    """Whether the callee is a layer with parameters, or a whole model of a library."""
    made = call.receiver.made_by if isinstance(call.receiver, Instance) else ""
    last = made.partition("()")[0].rpartition(".")[2]
    return call.name.endswith(".__call__") and (
        made.startswith(("torch.nn.Sequential", "torchvision.models.", "timm."))
        or (made.startswith("torch.nn.") and any(kind in last for kind in _WEIGHTED))
    )


def _unmoved(origins: Origins, value: Value) -> Value | None:
    """The tensor before operations that do not move it: changes of shape, and layers without parameters."""
    found: Value | None = value
    for _ in range(16):
        maker = origins.maker(found)
        if maker is None:
            return found
        is_layer = maker.name.endswith(".__call__") and not _has_weights(maker)
        if is_layer and maker.name.startswith("torch.nn.") and len(maker.arguments) == 1:
            found = maker.arguments[0]
        elif maker.receiver is not None and maker.name.rpartition(".")[2] in _SHAPING:
            found = maker.receiver
        else:
            return found
    return None


def _is_batch(value: Value | None) -> bool:
    """Whether a value is an unmoved batch of a data loader, or a numbered part of one."""
    loader = _loader(value)
    if loader is None or not isinstance(value, Instance) or loader.keywords.get("collate_fn"):
        return False
    way = value.made_by.partition("()")[2].replace("[", "").split("]")
    return all(one.isdecimal() or not one for one in way)


def _loader(value: Value | None) -> Instance | None:
    loader = (
        unwrapped(value.part_of) if isinstance(value, Instance) and value.place is None else None
    )
    return loader if isinstance(loader, Instance) and loader.made_by == _LOADER else None


def _own_data(origins: Origins, call: Called) -> bool:
    """Whether the data may be on the GPU: they are not those of a library that reads them from files."""
    for value in call.arguments[:2]:
        loader = _loader(_unmoved(origins, value))
        data = (
            [*loader.arguments, loader.keywords.get("dataset")][0] if loader is not None else None
        )
        if loader is not None and not (isinstance(data, Instance) and _is_on_cpu(data)):
            return True
    return False


def _is_on_cpu(data: Instance) -> bool:
    if data.made_by == "torch.utils.data.TensorDataset":
        return all(
            isinstance(one, Instance)
            and "device" not in one.keywords
            and one.made_by.count("()") == 0
            for one in data.arguments
        )
    return data.made_by.startswith("torchvision.datasets.")


def _device(program: Program, use: int, model: Model, target: Target) -> str:
    """The device of a model at the call with this number."""
    models, reach = Models.of(program), Reach.of(program)
    device = _CPU
    for call in program.calls[:use]:
        method = call.name.rpartition(".")[2]
        if method in ("cuda", "cpu", "to") and models.model(call.receiver) == model:
            given = [*call.arguments, *call.keywords.values()]
            device = {"cuda": _GPU, "cpu": _CPU}.get(method) or _moved_to(given, target)
            if device == _GPU and reach.severity(call.at) != "error":
                device = _PERHAPS
    return device


def _moved_to(given: list[Value], target: Target) -> str:
    for value in given:
        if named := device_named(value):
            return _GPU if named == "cuda" else _CPU
        if (
            isinstance(value, Instance)
            and value.made_by == "torch.device"
            and value.place is not None
        ):
            asks = "cuda" in value.place.code and "is_available" in value.place.code
            return (_GPU if target.gpus else _PERHAPS) if asks else _CPU
    return _CPU


def _moves_items(program: Program) -> bool:
    """Whether the job stores moved tensors back in their container: ``batch[k] = batch[k].cuda()``."""
    return any(
        isinstance(one, ast.Attribute) and one.attr in ("to", "cuda")
        for module in program.modules.values()
        for node in code_of(module).of(ast.Assign)
        if any(isinstance(kept, ast.Subscript) for kept in node.targets)
        for one in ast.walk(node.value)
    )


RULE = Rule(
    title="A batch stays on the CPU while the model is on a GPU",
    category="framework_api_misuse",
    why="A data loader returns tensors on the CPU, whatever the device of the model. If a loop, "
    "often the validation loop, does not move one of them, it fails at its first batch. On a "
    "machine without a GPU the error does not occur.",
    fix="Move each batch to the model's device.",
    source="PyTorch documentation, torch.utils.data, memory pinning; torch.nn.Module.to",
    check=_check,
    catches=examples("""
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).cuda()
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))  # <-
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).to('cuda')
        loss = nn.MSELoss()
        for x, y in loader:
            x = x.to('cuda')
            print(loss(model(x), y))  # <-
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x).squeeze(1)


        device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
        model = Net().to(device)
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))  # <-
        ==> target.toml <==
        gpus = "2 x A100"
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x).squeeze(1)


        device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
        model = Net().to(device)
        loss = nn.MSELoss()
        for x, y in loader:
            x = x.to(device)
            print(loss(model(x), y))  # <-
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).cuda()
        loss = nn.MSELoss()
        for i, (x, y) in enumerate(loader):
            print(loss(model(x), y))  # <-
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Linear(4, 1).cuda()
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))  # <-
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        device = 'cuda' if torch.cuda.is_available() else 'cpu'
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).to(device)
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))  # <-
        ==> target.toml <==
        gpus = "2 x A100"
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
        if torch.cuda.is_available():
            model.cuda()
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))  # <-
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x.view(-1, 4)).squeeze(1)


        device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
        model = Net().to(device)
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))  # <-
    """),
    leaves=examples("""
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        flat = nn.Flatten().cuda()
        for x, y in loader:
            print(flat(x))
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).cuda()
        loss = nn.MSELoss()
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            print(loss(model(x), y))
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)

            def forward(self, x):
                return self.fc(x).squeeze(1)


        device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
        model = Net().to(device)
        loss = nn.MSELoss()
        for x, y in loader:
            x, y = [one.to(device) for one in (x, y)]
            print(loss(model(x), y))
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))
        ----
        $ sbatch job.sh
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        device = 'cuda' if torch.cuda.is_available() else 'cpu'
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).to(device)
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))
        ==> job.sh <==
        #!/bin/bash
        python train.py
        ==> target.toml <==
        gpus = "2 x A100"
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).cuda()
        model.cpu()
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).cuda()
        model = nn.DataParallel(model)
        loss = nn.MSELoss()
        for x, y in loader:
            y = y.cuda()
            print(loss(model(x), y))
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        cuda = torch.cuda.is_available()
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
        if cuda:
            model.cuda()
        loss = nn.MSELoss()
        for x, y in loader:
            if cuda:
                x, y = x.cuda(), y.cuda()
            print(loss(model(x), y))
        ----
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4).cuda(), torch.zeros(8, device='cuda'))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))
        ----
        from accelerate import Accelerator
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.rand(8, 4), torch.zeros(8))
        loader = DataLoader(data, batch_size=4)
        model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).cuda()
        loader = Accelerator().prepare(loader)
        loss = nn.MSELoss()
        for x, y in loader:
            print(loss(model(x), y))
    """),
)
