"""The program reads a key of a checkpoint that was not saved."""

import ast
from difflib import get_close_matches

from epochzero.check.program.events import Lookup
from epochzero.check.program.syntax import code_of
from epochzero.check.program.values import Instance
from epochzero.check.rule import Claim, Claims, JobView, Program, Reach, Rule, claim_at, guarded
from epochzero.check.view.checkpoints import CheckpointLoad, loads_of

ENOUGH_SHARED = 2
"""Keys that a checkpoint of unknown name must share with a saved one to be treated as the same."""


def _check(view: JobView) -> Claims:
    asked = _asked_for(view.program)
    for loaded in loads_of(view.program, view.target):
        result = loaded.call.result
        if not isinstance(result, Instance) or any(held.keys is None for held in loaded.held):
            continue
        looks = [
            look
            for look in view.program.lookups
            if look.on == result and look.item and not look.stored and look.name not in asked
        ]
        keys = _keys(loaded)
        shared = {look.name for look in looks}.intersection(keys)
        if loaded.sure or len(shared) >= ENOUGH_SHARED:
            for look in looks:
                if look.name not in keys and not guarded(look.at, KeyError):
                    yield _claim(view.program, look, loaded)


def _keys(loaded: CheckpointLoad) -> list[str]:
    return list(dict.fromkeys(key for held in loaded.held for key in held.keys or ()))


def _asked_for(program: Program) -> set[str]:
    """Keys that the program checks before it reads them, or that it adds."""
    found = {look.name for look in program.lookups if look.stored}
    for module in program.modules.values():
        for node in code_of(module).of(ast.Compare):
            if isinstance(node.left, ast.Constant) and isinstance(node.ops[0], ast.In | ast.NotIn):
                found.add(str(node.left.value))
    return found


def _claim(program: Program, look: Lookup, loaded: CheckpointLoad) -> Claim:
    keys = _keys(loaded)
    near = get_close_matches(look.name, keys, n=1)
    return claim_at(
        look.at,
        severity=Reach.of(program).severity(look.at) if loaded.sure else "warning",
        message=f"The checkpoint has no {look.name!r}; it has {', '.join(keys[:8]) or 'nothing'}: "
        f"{loaded.held[0].evidence}.",
        consequence=f"KeyError: {look.name!r}",
        fix=f"Read {near[0]!r}, or save {look.name!r}."
        if near
        else f"Save {look.name!r} too, or read it with .get().",
    )


RULE = Rule(
    category="key_not_found",
    why="The code that saves a checkpoint and the code that reads it are far apart, often in two "
    "programs. The code that reads a checkpoint often runs for the first time when a job resumes "
    "after days.",
    fix="Save every key that the program reads, such as model, optimizer, scheduler and epoch.",
    source="PyTorch tutorials, Saving and loading a general checkpoint; Zhang et al., ICSE 2020, "
    "Table 1, Key Not Found",
    check=_check,
    examples="""
        import os
        import torch

        model = torch.nn.Linear(2, 2)
        torch.save({'model': model.state_dict(), 'epoch': 1}, 'last.pt')
        state = torch.load('last.pt')
        model.load_state_dict(state['net'])  # <-
        ---- ignored if
        -model.load_state_dict(state['net'])
        +if 'net' in state:
        +    print(state['net'])
        ----
        $ bash run.sh
        import os
        import torch

        model = torch.nn.Linear(2, 2)
        torch.save({'model': model.state_dict(), 'epoch': 1}, 'last.pt')
        ==> test.py <==
        import torch

        best = torch.load('last.pt')['best']  # <-
        ==> run.sh <==
        python train.py
        python test.py
        ----
        import torch


        def save(state, name='last.pt'):
            torch.save(state, name)


        save({'model': 1})
        print(torch.load('last.pt')['optimizer'])  # <-
        ----
        import torch

        for epoch in range(9):
            torch.save({'epoch': epoch, 'best': 1}, f'{epoch}.pt')
        state = torch.load('99.pt')
        print(state['epoch'], state['best'], state['model'])  # <-
        ----
        import os
        import torch

        model, start = torch.nn.Linear(2, 2), 0
        if os.path.exists('runs/last.pt'):
            state = torch.load('runs/last.pt')
            model.load_state_dict(state['model'])
            start = state['epoch'], state['epoch']
        for epoch in range(start, 3):
            torch.save({'model': model.state_dict(), 'epoch': epoch}, os.path.join('runs', 'last.pt'))
        ----
        import os
        import torch

        model = torch.nn.Linear(2, 2)
        torch.save({'model': model.state_dict(), 'epoch': 1}, 'last.pt')
        print(torch.load('other.pt')['net'])
        ---- ignored if
        -print(torch.load('other.pt')['net'])
        +import sys
        +print(torch.load(sys.argv[1])['net'])
        ---- ignored if
        -print(torch.load('other.pt')['net'])
        +try:
        +    print(torch.load('last.pt')['net'])
        +except KeyError:
        +    pass
        ---- ignored if
         model = torch.nn.Linear(2, 2)
        +path = os.environ.get('CHECKPOINT')
        +if path:
        +    state = torch.load(path)
        +    print(state['model'], state['epoch'], state['model'])
        @@
        -print(torch.load('other.pt')['net'])
        ----
        import torch

        model = torch.nn.Linear(2, 2)
        torch.save(model.state_dict(), 'a.pt')
        print(torch.load('a.pt')['weight'])
    """,
)
