"""Answers of a bounded size: what is left of a long one can be asked for by a handle."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from epochzero.errors import InputError
from epochzero.redact import redact_all

MOST_CHARACTERS = 1500
"""Of one text in an answer."""
PAGE_CHARACTERS = 8000
"""Of one page of items, about 2,000 tokens; at least one item."""
MOST_KEPT = 64
"""Long answers that are kept; the one that was asked for longest ago goes first."""

Item = Mapping[str, Any]


class Answers:
    """Hands out long answers by pages.

    Secrets are hidden in whatever leaves.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Sequence[Item]] = OrderedDict()
        self._made = 0
        self._lock = threading.Lock()

    def page(self, kind: str, items: Sequence[Item]) -> dict[str, Any]:
        """The first page of items.

        Returns:
            ``items``; and where there are more, ``left`` (how many) and ``more`` (the handle).
        """
        with self._lock:
            self._made += 1
            name = f"{kind}-{self._made}"
            self._kept[name] = items
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return self._from(name, items, 0)

    def more(self, handle: str) -> dict[str, Any]:
        """The page that a handle stands for.

        Raises:
            InputError: there is no such handle, or no more.
        """
        name, _, start = handle.partition(":")
        with self._lock:
            items = self._kept.get(name)
            if items is not None:
                self._kept.move_to_end(name)
        if items is None or not start.isascii() or not start.isdigit() or int(start) >= len(items):
            raise InputError(f"{handle!r} has expired; call the original tool again")
        return self._from(name, items, int(start))

    @staticmethod
    def _from(name: str, items: Sequence[Item], start: int) -> dict[str, Any]:
        page: list[Any] = []
        size = 0
        for item in items[start:]:
            shown = bounded(redact_all(dict(item)))
            size += len(str(shown))
            if page and size > PAGE_CHARACTERS:
                break
            page.append(shown)
        left = len(items) - start - len(page)
        return {"items": page} | (
            {"left": left, "more": f"{name}:{start + len(page)}"} if left else {}
        )


def bounded(value: Any) -> Any:
    """A value whose texts are cut in the middle where they are too long; nothing that is empty."""
    if isinstance(value, str):
        half = MOST_CHARACTERS // 2
        return value if len(value) <= MOST_CHARACTERS else f"{value[:half]} ... {value[-half:]}"
    if isinstance(value, Mapping):
        return {key: bounded(v) for key, v in value.items() if v not in (None, "", (), [], {})}
    if isinstance(value, (list, tuple)):
        return [bounded(item) for item in value]
    return value
