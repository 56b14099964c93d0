"""The job reads keys that a dictionary or configuration does not have."""

from __future__ import annotations

from difflib import get_close_matches

from epochzero.check.program.events import Looked
from epochzero.check.program.values import Constant, Items
from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Reach,
    Rule,
    SourceLocation,
    Target,
    claim_at,
    guarded,
)


def _check(program: Program, target: Target) -> Claims:
    reach = Reach.of(program)
    reported: set[SourceLocation] = set()
    for event in program.lookups:
        if not _is_missing(event) or event.at.place in reported or guarded(event.at, KeyError):
            continue
        reported.add(event.at.place)
        assert isinstance(event.on, Items)
        keys = [str(key.value) for key in event.on.keys if isinstance(key, Constant)]
        near = get_close_matches(event.name, keys, n=1)
        yield claim_at(
            event.at,
            severity=reach.severity(event.at),
            message=f"The key {event.name!r} does not exist; the keys are "
            f"{', '.join(keys[:8]) or 'none'}.",
            consequence=f"KeyError: {event.name!r}",
            fix=f"Did you mean {near[0]!r}?"
            if near
            else f"Add {event.name!r}, or read it with .get().",
        )


def _is_missing(event: Looked) -> bool:
    return (
        event.item
        and not event.stored
        and event.found is False
        and isinstance(event.on, Items)
        and event.on.kind == "dict"
        and event.on.complete
        and all(isinstance(key, Constant) for key in event.on.keys)
    )


_OPTIONS = "options = {'lr': 0.1, 'epochs': 3}\n"

RULE = Rule(
    title="The job reads a key that a dictionary or configuration does not have",
    category="key_not_found",
    why="A key that is read late, such as the name of a test set, fails late.",
    fix="Add the key, or read it with a default.",
    source="Zhang et al., ICSE 2020, Table 1, Key Not Found",
    check=_check,
    general=True,
    catches=(
        Case({"train.py": f"{_OPTIONS}print(options['epoch'])\n"}, line=2),
        Case({"train.py": f"{_OPTIONS}\n\ndef test(o):\n    print(o['split'])\n\n\ntest(options)\n"}, line=5),
        Case({"train.py": "import json\n\nconfig = json.load(open('c.json'))\nprint(config['name'])\n",
              "c.json": '{"lr": 0.1}'}, line=4),
        Case({"train.py": f"{_OPTIONS}for key in ['lr', 'batch']:\n    print(options[key])\n"}, line=3),
    ),
    leaves=(
        Case({"train.py": f"{_OPTIONS}print(options['epochs'], options.get('split'))\n"}),
        Case({"train.py": f"{_OPTIONS}options['split'] = 'test'\nprint(options['split'])\n"}),
        Case({"train.py": f"{_OPTIONS}import sys\noptions.update(dict(a.split('=') for a in sys.argv[1:]))\n"
              "print(options['split'])\n"}),
        Case({"train.py": f"{_OPTIONS}try:\n    print(options['split'])\nexcept KeyError:\n    pass\n"}),
        Case({"train.py": f"{_OPTIONS}if 'split' in options:\n    print(options['split'])\n"}),
        Case({"train.py": "from zoo import REG\n\nprint(REG['mlp'])\n",
              "zoo/__init__.py": "import importlib\nimport pkgutil\n\nREG = {}\n"
              "for _, name, _ in pkgutil.iter_modules(__path__):\n"
              "    importlib.import_module(f'{__name__}.{name}')\n",
              "zoo/nets.py": "from . import REG\n\nREG['mlp'] = 1\n"}),
        Case({"train.py": "from collections import defaultdict\nd = defaultdict(int)\nprint(d['a'])\n"}),
    ),
)  # fmt: skip
