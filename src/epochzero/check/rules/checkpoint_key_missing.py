"""The program reads a key of a checkpoint that was not saved."""

from __future__ import annotations

import ast
from difflib import get_close_matches

from epochzero.check.checkpoints import Loaded, loads_of
from epochzero.check.code import code_of
from epochzero.check.program.events import Looked
from epochzero.check.program.values import Instance
from epochzero.check.rules.base import (
    Case,
    Claim,
    Claims,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
    guarded,
)

ENOUGH_SHARED = 2
"""Keys that a checkpoint of unknown name must share with a saved one to be treated as the same."""


def _check(program: Program, target: Target) -> Claims:
    asked = _asked_for(program)
    for loaded in loads_of(program, target):
        result = loaded.call.result
        if not isinstance(result, Instance) or any(held.keys is None for held in loaded.held):
            continue
        looks = [
            look
            for look in program.lookups
            if look.on == result and look.item and not look.stored and look.name not in asked
        ]
        keys = _keys(loaded)
        shared = {look.name for look in looks}.intersection(keys)
        if loaded.sure or len(shared) >= ENOUGH_SHARED:
            for look in looks:
                if look.name not in keys and not guarded(look.at, KeyError):
                    yield _claim(program, look, loaded)


def _keys(loaded: Loaded) -> list[str]:
    return list(dict.fromkeys(key for held in loaded.held for key in held.keys or ()))


def _asked_for(program: Program) -> set[str]:
    """Keys that the program checks before it reads them, or that it adds."""
    found = {look.name for look in program.lookups if look.stored}
    for module in program.modules.values():
        for node in code_of(module).of(ast.Compare):
            if isinstance(node.left, ast.Constant) and isinstance(node.ops[0], ast.In | ast.NotIn):
                found.add(str(node.left.value))
    return found


def _claim(program: Program, look: Looked, loaded: Loaded) -> Claim:
    keys = _keys(loaded)
    near = get_close_matches(look.name, keys, n=1)
    return claim_at(
        look.at,
        severity=Reach.of(program).severity(look.at) if loaded.sure else "warning",
        message=f"The checkpoint has no {look.name!r}; it has {', '.join(keys[:8]) or 'nothing'}: "
        f"{loaded.held[0].said_by}.",
        consequence=f"KeyError: {look.name!r}",
        fix=f"Read {near[0]!r}, or save {look.name!r}."
        if near
        else f"Save {look.name!r} too, or read it with .get().",
    )


_SAVE = (
    "import os\nimport torch\n\nmodel = torch.nn.Linear(2, 2)\n"
    "torch.save({'model': model.state_dict(), 'epoch': 1}, 'last.pt')\n"
)
_RESUME = (
    "import os\nimport torch\n\nmodel, start = torch.nn.Linear(2, 2), 0\n"
    "if os.path.exists('runs/last.pt'):\n    state = torch.load('runs/last.pt')\n"
    "    model.load_state_dict(state['model'])\n    start = state['epoch'], state[{!r}]\n"
    "for epoch in range(start, 3):\n    torch.save({{'model': model.state_dict(), 'epoch': epoch}}, "
    "os.path.join('runs', 'last.pt'))\n"
)
_ANY = (
    "import os\nimport torch\n\nmodel = torch.nn.Linear(2, 2)\npath = os.environ.get('CHECKPOINT')\n"
    "if path:\n    state = torch.load(path)\n    print(state['model'], state['epoch'], state[{}])\n"
    "torch.save({{'model': model.state_dict(), 'epoch': 1}}, 'last.pt')\n"
)
_NUMBERED = (
    "import torch\n\nfor epoch in range(9):\n    torch.save({'epoch': epoch, 'best': 1}, f'{epoch}.pt')\n"
    "state = torch.load('99.pt')\nprint(state['epoch'], state['best'], state['model'])\n"
)

RULE = Rule(
    title="The program reads a key of a checkpoint that was not saved",
    category="key_not_found",
    why="The code that saves and the code that reads are far apart, often in two programs. The "
    "code that reads often runs for the first time when the job resumes after days.",
    fix="Save every key that is read: model, optimizer, scheduler, epoch.",
    source="PyTorch tutorials, Saving and loading a general checkpoint; Zhang et al., ICSE 2020, "
    "Table 1, Key Not Found",
    check=_check,
    catches=(
        Case({"train.py": f"{_SAVE}state = torch.load('last.pt')\nmodel.load_state_dict(state['net'])\n"},
             line=7),
        Case({"train.py": _RESUME.format("step")}, line=8),
        Case({"train.py": _SAVE, "test.py": "import torch\n\nbest = torch.load('last.pt')['best']\n",
              "run.sh": "python train.py\npython test.py\n"},
             command=("bash", "run.sh"), path="test.py", line=3),
        Case({"train.py": "import torch\n\n\ndef save(state, name='last.pt'):\n    torch.save(state, name)\n\n\n"
              "save({'model': 1})\nprint(torch.load('last.pt')['optimizer'])\n"}, line=9),
        Case({"train.py": _ANY.format("'step'")}, line=8),
        Case({"train.py": _NUMBERED}, line=6),
    ),
    leaves=(
        Case({"train.py": f"{_SAVE}print(torch.load('last.pt')['epoch'])\n"}),
        Case({"train.py": _RESUME.format("epoch")}),
        Case({"train.py": f"{_SAVE}state = torch.load('last.pt')\nif 'net' in state:\n    print(state['net'])\n"}),
        Case({"train.py": f"{_SAVE}print(torch.load('other.pt')['net'])\n"}),
        Case({"train.py": f"{_SAVE}import sys\nprint(torch.load(sys.argv[1])['net'])\n"}),
        Case({"train.py": _ANY.format("'model'")}),
        Case({"train.py": f"{_SAVE}torch.save({{'net': 1}}, 'last.pt')\nprint(torch.load('last.pt')['net'])\n"}),
        Case({"train.py": f"{_SAVE}try:\n    print(torch.load('last.pt')['net'])\nexcept KeyError:\n    pass\n"}),
        Case({"train.py": "import torch\n\nmodel = torch.nn.Linear(2, 2)\ntorch.save(model.state_dict(), 'a.pt')\n"
              "print(torch.load('a.pt')['weight'])\n"}),
    ),
)  # fmt: skip
