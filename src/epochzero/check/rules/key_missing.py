"""The job reads a key that a dictionary or configuration does not have."""

from difflib import get_close_matches

from epochzero.check.program.events import Lookup
from epochzero.check.program.values import Constant, Items, entries_of
from epochzero.check.rule import Claims, JobView, Rule, SourceLocation, claim_at, guarded


def _check(view: JobView) -> Claims:
    reported: set[SourceLocation] = set()
    for event in view.program.lookups:
        if not _is_missing(event) or event.at.place in reported or guarded(event.at, KeyError):
            continue
        reported.add(event.at.place)
        assert isinstance(event.on, Items)
        keys = [str(key.value) for key, _ in entries_of(event.on)]
        near = get_close_matches(event.name, keys, n=1)
        yield claim_at(
            event.at,
            message=f"The key {event.name!r} does not exist; the keys are "
            f"{', '.join(keys[:8]) or 'none'}.",
            consequence=f"KeyError: {event.name!r}",
            fix=f"Did you mean {near[0]!r}?"
            if near
            else f"Add {event.name!r}, or read it with .get().",
        )


def _is_missing(event: Lookup) -> bool:
    return (
        event.item
        and not event.stored
        and event.found is False
        and isinstance(event.on, Items)
        and event.on.kind == "dict"
        and event.on.complete
        and all(isinstance(key, Constant) for key in event.on.keys)
    )


RULE = Rule(
    category="key_not_found",
    why="Reading a missing key raises an error. A program may read some keys, such as the name of "
    "a test set, only after training.",
    fix="Add the key, or specify a default value.",
    source="Zhang et al., ICSE 2020, Table 1, Key Not Found",
    check=_check,
    general=True,
    examples="""
        options = {'lr': 0.1, 'epochs': 3}
        print(options['epoch'])  # <-
        ----
        options = {'lr': 0.1, 'epochs': 3}


        def test(o):
            print(o['split'])  # <-


        test(options)
        ----
        from torch import nn


        def first_inputs(model):
            seen = {'count': 0}

            class Catcher(nn.Module):
                def forward(self, x, **others):
                    seen['mask'] = others['mask']

            model.layers[0] = Catcher()
            model()
            return seen['mask']


        first_inputs(nn.Module())
        ----
        import json

        config = json.load(open('c.json'))
        print(config['name'])  # <-
        ==> c.json <==
        {"lr": 0.1}
        ----
        options = {'lr': 0.1, 'epochs': 3}
        for key in ['lr', 'batch']:
            print(options[key])  # <-
        ----
        options = {'lr': 0.1, 'epochs': 3}
        print(options['epochs'], options.get('split'))
        ----
        options = {'lr': 0.1, 'epochs': 3}
        options['split'] = 'test'
        print(options['split'])
        ---- ignored if
        -options['split'] = 'test'
        +import sys
        +options.update(dict(a.split('=') for a in sys.argv[1:]))
        ----
        options = {'lr': 0.1, 'epochs': 3}
        try:
            print(options['split'])
        except KeyError:
            pass
        ----
        options = {'lr': 0.1, 'epochs': 3}
        if 'split' in options:
            print(options['split'])
        ----
        from zoo import REG

        print(REG['mlp'])
        ==> zoo/__init__.py <==
        import importlib
        import pkgutil

        REG = {}
        for _, name, _ in pkgutil.iter_modules(__path__):
            importlib.import_module(f'{__name__}.{name}')
        ==> zoo/nets.py <==
        from . import REG

        REG['mlp'] = 1
        ----
        from collections import defaultdict
        d = defaultdict(int)
        print(d['a'])
    """,
)
