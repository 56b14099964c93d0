"""Models by name; each module of this folder registers its own."""

import importlib
import pkgutil

MODELS = {}


def register(name=None):
    def wrap(thing):
        MODELS[name or thing.__name__.lower()] = thing
        return thing

    return wrap


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def build(name, **options):
    try:
        return MODELS[name](**options)
    except KeyError:
        raise SystemExit(f"no model {name}; there are {sorted(MODELS)}") from None
