"""The configuration lacks a key that the program reads."""

import re
from collections.abc import Iterator

from epochzero.check.program.configuration import kind_of
from epochzero.check.program.events import LibraryCall
from epochzero.check.program.parsers.model import nearest
from epochzero.check.program.values import Constant, Instance, Items, Value, entries_of
from epochzero.check.rule import (
    Claim,
    Claims,
    JobView,
    Program,
    Rule,
    claim_at,
    claim_failure,
    failures,
    guarded,
)

_DEEPEST = 20
_MOST = 100


_CONFIG = "omegaconf.DictConfig"
_ADDS = re.compile(r"omegaconf\.(open_dict|(OmegaConf\.)?(update|merge|set_struct))$")
_ADDS_NOTHING = re.compile(r"(builtins|omegaconf|hydra|logging|wandb|pprint|rich|copy)\.")


def _check(view: JobView) -> Claims:
    yield from _of_files(view.program)
    yield from _of_hydra(view.program)


def _of_hydra(program: Program) -> Iterator[Claim]:
    """Keys that are read from a configuration composed by Hydra and that none of its files has."""
    if any(_may_add(call) for call in program.calls):
        return
    yield from _of_values(program)
    stored = {event.name for event in program.lookups if event.stored}
    for event in program.lookups:
        if not _is_config(event.on) or event.found is not False or event.name in stored:
            continue
        asked = not event.at.certain if event.item else _is_named(program, event.name)
        if not asked and not guarded(event.at, AttributeError, KeyError):
            error = "ConfigKeyError" if event.item else "ConfigAttributeError"
            yield claim_at(
                event.at,
                message=f"The configuration that Hydra composes has no {event.name!r} at this "
                "position.",
                consequence=f"omegaconf.errors.{error}: Key '{event.name}' is not in struct",
                fix=f"Add {event.name} to the configuration file, or read it with cfg.get.",
            )


def _of_values(program: Program) -> Iterator[Claim]:
    """Keys that are read and have no value: ``???``, or a reference to a key that does not exist."""
    if any(event.stored and _is_config(event.on) for event in program.lookups):
        return  # An interpolation elsewhere may use what is stored here.
    for failed in failures(program, "configuration"):
        mandatory = failed.error == "MissingMandatoryValue"
        key = failed.message.partition(": ")[2]
        yield claim_failure(
            failed,
            message=f"{key} is ??? in the configuration, and nothing sets it."
            if mandatory
            else (
                f"{failed.message}: the value refers to a key that the configuration does not have."
            ),
            fix=f"Set {key}=... on the command line, or set it in the configuration file."
            if mandatory
            else "Write the full path of the key, from the top of the configuration.",
        )


def _may_add(call: LibraryCall) -> bool:
    """Whether a call may add keys to a configuration."""
    given = any(_is_config(value) for value in (*call.arguments, *call.keywords.values()))
    return bool(_ADDS.match(call.name)) or (given and not _ADDS_NOTHING.match(call.name))


def _is_config(value: Value) -> bool:
    return isinstance(value, Instance) and value.made_by == _CONFIG


def _is_named(program: Program, name: str) -> bool:
    """Whether the job contains the name as a text: ``"name" in cfg``."""
    quoted = re.compile(rf"""["']{re.escape(name)}["']""")
    return any(quoted.search(module.text) for module in program.modules.values())


def _of_files(program: Program) -> Iterator[Claim]:
    for event in program.lookups:
        if event.found is not False or event.stored or not isinstance(event.on, Items):
            continue
        path = _path(event.on)
        error = KeyError if event.item else AttributeError
        if not path or guarded(event.at, error):
            continue
        near = nearest(event.name, list(_keys(event.on)))
        meant = f"Write {near}, if that is what you mean" if near else f"Add {event.name} to {path}"
        yield claim_at(
            event.at,
            message=f"{path} has no {event.name!r} at this position; it has {_some(event.on)}.",
            consequence=f"{error.__name__}: '{event.name}'",
            fix=f"{meant}, or read it with a default.",
        )


def _path(items: Items) -> str:
    """The configuration file of a whole dictionary; empty if it has none."""
    if items.kind != "dict" or not items.complete or not items.keys:
        return ""
    # The file is not at fault for values that the program composes itself.
    paths = set(_origins(items, 0))
    path = paths.pop() if len(paths) == 1 else ""
    return path if kind_of(path) else ""


def _origins(value: Value, depth: int) -> Iterator[str]:
    """The files that the constants of a value come from."""
    if isinstance(value, Constant):
        yield value.origin.path if value.origin else ""
    elif isinstance(value, Items) and depth < _DEEPEST:
        for item in value.values[:_MOST]:
            yield from _origins(item, depth + 1)
    else:
        yield ""


def _keys(items: Items) -> Iterator[str]:
    return (str(key.value) for key, _ in entries_of(items))


def _some(items: Items, most: int = 8) -> str:
    names = list(_keys(items))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")


RULE = Rule(
    category="key_not_found",
    why="Authors often rename a key only in the code or only in one of many configuration files. "
    "Programs often read some keys, such as the settings of the evaluation, only after the whole "
    "training.",
    fix="Add the key to the file, or read the key with a default value.",
    source="Zhang et al., ICSE 2020, section 3.3: Key Not Found; section 4: failures in evaluation",
    check=_check,
    examples="""
        import yaml

        with open('c.yaml') as stream:
            config = yaml.safe_load(stream)
        print(config['eval']['beam'])  # <-
        ==> c.yaml <==
        lr: 0.1
        eval:
          beam_size: 4
        ----
        import json
        config = json.load(open('c.json'))
        print(config['lrr'])  # <-
        ==> c.json <==
        {"lr": 0.1}
        ---- ignored if
        -print(config['lrr'])
        +config['x'] = 1
        +print(config['lr'], config['x'], config.get('y'))
        ---- ignored if
        -print(config['lrr'])
        +try:
        +    print(config['y'])
        +except KeyError:
        +    pass
        ----
        import hydra


        @hydra.main(config_path='conf', config_name='main')
        def main(cfg):
            print(cfg.data.root)  # <-


        main()
        ==> conf/main.yaml <==
        data:
          root: ???
        out: ${paths.out}/run
        near: ${.data}
        at: ${now:%Y}
        ---- caught if
        -    print(cfg.data.root)  # <-
        +    print(cfg['out'])  # <-
        ---- ignored if
        +$ python train.py data.root=a
         import hydra
        ---- ignored if
        +$ python train.py +paths.out=a
         import hydra
        @@
        -    print(cfg.data.root)
        +    print(cfg.out)
        ----
        from omegaconf import OmegaConf
        cfg = OmegaConf.merge(OmegaConf.load('c.yaml'), OmegaConf.from_cli())
        print(cfg.data.test)
        ==> c.yaml <==
        data:
          test: ${paths.test}/x
        ----
        import hydra


        @hydra.main(config_path='conf', config_name='main')
        def main(cfg):
            print(cfg.model.depth, cfg.get('seed'))


        main()
        ==> conf/main.yaml <==
        lr: 0.1
        model:
          depth: 3
        ---- ignored if
        -    print(cfg.model.depth, cfg.get('seed'))
        +    print('seed' in cfg and cfg.seed)
        ---- caught if
        -    print(cfg.model.depth, cfg.get('seed'))
        +    print(cfg.lr, cfg.seed)  # <-
    """,
)
