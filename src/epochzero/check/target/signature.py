"""Signatures: from a definition, from overloads, and as text; and whether a call fits.

The text is the parameter list of a Python definition with ``...`` for every default:
``input, dim=..., /, *, keepdim=..., **options``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from epochzero.check.target.model import CallSignature

_PARAMETER = re.compile(r"(?P<stars>\*{0,2})(?P<name>[^\W\d]\w*)(?P<default>=\.\.\.)?|\*|/")
_MOST_TEXTS = 1 << 15


def text_of(signature: CallSignature) -> str:
    """The text of a signature; `signature_of` is the inverse."""
    by_name = set(signature.keywords)
    parts: list[str] = []
    for number, name in enumerate(signature.positional):
        if number and name in by_name and signature.positional[number - 1] not in by_name:
            parts.append("/")
        parts.append(name if number < signature.required else f"{name}=...")
    if signature.positional and signature.positional[-1] not in by_name:
        parts.append("/")
    only = [name for name in signature.keywords if name not in signature.positional]
    if signature.any_positional:
        parts.append("*args")
    elif only:
        parts.append("*")
    needed = set(signature.required_keywords)
    parts += [name if name in needed else f"{name}=..." for name in only]
    if signature.any_keyword:
        parts.append("**kwargs")
    return ", ".join(parts)


@lru_cache(_MOST_TEXTS)
def signature_of(text: str) -> CallSignature:
    """Parse the text of a signature.

    Raises:
        ValueError: the text is not a valid parameter list, or a default is not ``...``.
    """
    reading = _SignatureReader()
    for part in text.split(", ") if text.strip() else ():
        found = _PARAMETER.fullmatch(part.strip())
        if found is None or not reading.add(part.strip(), found):
            raise ValueError(f"{part.strip()!r} is not valid in the parameters {text!r}")
    return reading.signature()


class Signatures(Mapping[str, CallSignature | None]):
    """Names with their signatures, each parsed on first use.

    Args:
        texts: by name; None for a name without a known signature.
    """

    def __init__(self, texts: Mapping[str, str | None]) -> None:
        self._texts = texts

    def __getitem__(self, name: str) -> CallSignature | None:
        text = self._texts[name]
        return None if text is None else signature_of(text)

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


class _SignatureReader:
    """The parameters read so far."""

    def __init__(self) -> None:
        self.positional: list[str] = []
        self.only_positional: list[str] = []
        self.only_keyword: list[str] = []
        self.needed: list[str] = []
        self.required = 0
        self.bare_star = self.star = self.two_stars = False

    def add(self, part: str, found: re.Match[str]) -> bool:
        """Add the next parameter; return whether it is allowed there."""
        name, stars, optional = found["name"], found["stars"], bool(found["default"])
        if self.two_stars or (stars and optional):
            return False
        if part == "/":
            fits = bool(self.positional) and not self._after_star() and not self.only_positional
            self.only_positional = list(self.positional)
            return fits
        if part == "*" or stars == "*":
            fits = not self._after_star()
            self.bare_star, self.star = part == "*", bool(stars)
            return fits
        if stars:
            self.two_stars = True
            return True
        return self._add_named(name, optional)

    def _after_star(self) -> bool:
        return self.bare_star or self.star

    def _add_named(self, name: str, optional: bool) -> bool:
        if name in self.positional or name in self.only_keyword:
            return False
        if self._after_star():
            self.only_keyword.append(name)
            if not optional:
                self.needed.append(name)
            return True
        fits = optional or self.required == len(self.positional)
        self.positional.append(name)
        self.required += not optional
        return fits

    def signature(self) -> CallSignature:
        """The signature of all parameters."""
        by_name = self.positional[len(self.only_positional) :]
        return CallSignature(
            positional=tuple(self.positional),
            required=self.required,
            keywords=(*by_name, *self.only_keyword),
            required_keywords=tuple(self.needed),
            any_positional=self.star,
            any_keyword=self.two_stars,
        )


def of_definition(
    arguments: ast.arguments, *, bound: bool = False, stub: bool = False
) -> CallSignature:
    """The signature of a definition.

    Args:
        arguments: of the ``def``.
        bound: whether Python passes the first argument (``self``, ``cls``).
        stub: whether it is in a stub. Stubs older than PEP 570 mark positional-only parameters with two underscores.
    """
    only = [a.arg for a in arguments.posonlyargs]
    both = [a.arg for a in arguments.args]
    while stub and not arguments.posonlyargs and both and _is_old_positional(both[0], only, bound):
        only.append(both.pop(0))
    positional = [*only, *both]
    required = len(positional) - len(arguments.defaults)
    if bound and positional:
        both = both if only else both[1:]
        positional, required = positional[1:], max(required - 1, 0)
    keyword_only = [a.arg for a in arguments.kwonlyargs]
    given = zip(keyword_only, arguments.kw_defaults, strict=True)
    return CallSignature(
        positional=tuple(positional),
        required=required,
        keywords=(*both, *keyword_only),
        required_keywords=tuple(name for name, default in given if default is None),
        any_positional=arguments.vararg is not None,
        any_keyword=arguments.kwarg is not None,
    )


def _is_old_positional(name: str, before: Sequence[str], bound: bool) -> bool:
    if bound and not before:
        return False
    return name.startswith("__") and not name.endswith("__")


def merged(signatures: Sequence[CallSignature]) -> CallSignature:
    """Merge overloads to one signature that accepts every call that one of them accepts.

    It also accepts combinations of arguments that none of them accepts.
    """
    if len(signatures) == 1:
        return signatures[0]
    longest = max(signatures, key=lambda s: len(s.positional))
    named = {name for s in signatures for name in s.keywords}
    # A positional-only parameter cannot follow one that may be named.
    leading = 0
    while leading < len(longest.positional) and longest.positional[leading] not in named:
        leading += 1
    by_name = longest.positional[leading:]
    others = dict.fromkeys(
        name for s in signatures for name in s.keywords if name not in longest.positional
    )
    needed = set.intersection(*(set(s.required_keywords) for s in signatures))
    return CallSignature(
        positional=longest.positional,
        required=_required_by_all(signatures),
        keywords=(*by_name, *others),
        required_keywords=tuple(name for name in others if name in needed),
        any_positional=any(s.any_positional for s in signatures),
        any_keyword=any(s.any_keyword for s in signatures),
    )


def _required_by_all(signatures: Sequence[CallSignature]) -> int:
    """The number of leading parameters that all overloads require, at the same position.

    ``randint(low, high, size)`` and ``randint(high, size)`` have none: a single number is ``high``.
    """
    fewest = min(s.required for s in signatures)
    columns = zip(*(s.positional[:fewest] for s in signatures), strict=True)
    return sum(1 for _ in takewhile(lambda names: len(set(names)) == 1, columns))


def misfit(
    signature: CallSignature, positional: int, keywords: Collection[str], complete: bool
) -> str:
    """Python's error for the arguments of a call; empty if they fit."""
    names = signature.positional
    if positional > len(names) and not signature.any_positional:
        return f"takes {len(names)} positional argument{_s(names)} but {_were(positional)} given"
    unknown = [keyword for keyword in keywords if keyword not in signature.keywords]
    if unknown and not signature.any_keyword:
        return f"got an unexpected keyword argument '{unknown[0]}'"
    twice = [name for name in names[:positional] if name in keywords and name in signature.keywords]
    if twice:
        return f"got multiple values for argument '{twice[0]}'"
    if not complete:
        return ""
    missing = [name for name in names[positional : signature.required] if name not in keywords]
    if missing:
        return (
            f"missing {len(missing)} required positional argument{_s(missing)}: {_listed(missing)}"
        )
    missing = [keyword for keyword in signature.required_keywords if keyword not in keywords]
    if missing:
        return f"missing {len(missing)} required keyword-only argument{_s(missing)}: {_listed(missing)}"
    return ""


def _s(names: Collection[str]) -> str:
    return "" if len(names) == 1 else "s"


def _were(count: int) -> str:
    return f"{count} was" if count == 1 else f"{count} were"


def _listed(names: list[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)
