"""Whether the arguments of a call fit the parameters of what is called."""

from __future__ import annotations

import ast
from collections.abc import Collection

from epochzero.check.target.model import Signature


def signature(said: ast.arguments, bound: bool = False) -> Signature:
    """The parameters of a function as they are written.

    Args:
        said: its parameters.
        bound: whether the first one, ``self``, is given by the object.
    """
    names = tuple(arg.arg for arg in [*said.posonlyargs, *said.args][int(bound) :])
    only = [arg.arg for arg in said.posonlyargs]
    keyword_only = [arg.arg for arg in said.kwonlyargs]
    required = [
        arg.arg
        for arg, value in zip(said.kwonlyargs, said.kw_defaults, strict=True)
        if value is None
    ]
    return Signature(
        positional=names,
        required=max(0, len(names) - len(said.defaults)),
        keywords=tuple(name for name in (*names, *keyword_only) if name not in only),
        required_keywords=tuple(required),
        any_positional=said.vararg is not None,
        any_keyword=said.kwarg is not None,
    )


def misfit(signature: Signature, positional: int, keywords: Collection[str], complete: bool) -> str:
    """What Python would say of the arguments of a call; empty when they fit."""
    names = signature.positional
    if positional > len(names) and not signature.any_positional:
        return f"takes {len(names)} positional argument{_s(names)} but {_were(positional)} given"
    unknown = [one for one in keywords if one not in signature.keywords]
    if unknown and not signature.any_keyword:
        return f"got an unexpected keyword argument '{unknown[0]}'"
    twice = [one for one in names[:positional] if one in keywords and one in signature.keywords]
    if twice:
        return f"got multiple values for argument '{twice[0]}'"
    if not complete:
        return ""
    missing = [one for one in names[positional : signature.required] if one not in keywords]
    if missing:
        return (
            f"missing {len(missing)} required positional argument{_s(missing)}: {_listed(missing)}"
        )
    missing = [one for one in signature.required_keywords if one not in keywords]
    if missing:
        return f"missing {len(missing)} required keyword-only argument{_s(missing)}: {_listed(missing)}"
    return ""


def _s(names: Collection[str]) -> str:
    return "" if len(names) == 1 else "s"


def _were(count: int) -> str:
    return f"{count} was" if count == 1 else f"{count} were"


def _listed(names: list[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)
