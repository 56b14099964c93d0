"""The techniques of the literature: each module here that has a `Method` is one.

Spectrum-based techniques rank by runs of tests and not by a report: they are in
`epochzero.locate.techniques.spectrum`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from epochzero.locate.techniques.base import Method, Technique


def _methods() -> dict[str, Method]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = (import_module(f"{__name__}.{name}") for name in names)
    found = (getattr(module, "METHOD", None) for module in modules)
    return {method.name: method for method in found if method is not None}


TECHNIQUES: Mapping[str, Method] = MappingProxyType(_methods())
"""The techniques, by the names that users give."""
