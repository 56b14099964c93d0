"""Answers of a bounded size: what is left of a long one can be asked for by a handle."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from epochzero.errors import InputError
from epochzero.redact import redact_all

MOST_CHARACTERS = 1000
"""Of one text in an answer."""
MOST_TOKENS = 2000
"""Of one answer, by `tokens`."""
_TOKEN = re.compile(r"[^\x00-\x7f]|[A-Za-z]{1,5}|[0-9]{1,3}|[!-/:-@\[-^`{-~]{1,3}| +(?=[\d ])")
MOST_KEPT = 64
"""Long answers that are kept; the one that was asked for longest ago goes first."""

Item = Mapping[str, Any]
Answer = dict[str, Any]


class Answers:
    """Hands out long answers by pages.

    Secrets are hidden in whatever leaves.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Sequence[Item]] = OrderedDict()
        self._made = 0
        self._lock = threading.Lock()

    def answer(self, given: Item, **lists: Sequence[Item]) -> Answer:
        """An answer with the first page of each list, of `MOST_TOKENS` together.

        A page has ``items``, and if there are more, ``left`` (how many) and ``more`` (the handle).
        """
        shown: Answer = bounded(redact_all(given))
        room = MOST_TOKENS - tokens(shown)
        for done, (kind, items) in enumerate(lists.items()):
            with self._lock:
                self._made += 1
                name = f"{kind}-{self._made}"
                self._kept[name] = items
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
            shown[kind] = self._from(name, items, 0, room, room // (len(lists) - done))
            room -= tokens(shown[kind])
        return shown

    def more(self, handle: str) -> Answer:
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
        return self._from(name, items, int(start), MOST_TOKENS, MOST_TOKENS)

    @staticmethod
    def _from(name: str, items: Sequence[Item], start: int, room: int, share: int) -> Answer:
        page: list[Any] = []
        for item in items[start:]:
            shown = bounded(redact_all(dict(item)))
            size = tokens(shown)
            # The first item may take all that is left; on a later page it is shown whatever its size.
            fits = size <= share if page else size <= room or start > 0
            if not fits:
                break
            share -= size
            page.append(shown)
        left = len(items) - start - len(page)
        return {"items": page} | (
            {"left": left, "more": f"{name}:{start + len(page)}"} if left else {}
        )


def tokens(value: Any) -> int:
    """An estimate, usually 6 to 24 % above the count of a common tokenizer (o200k; 105 answers on real logs)."""
    return len(_TOKEN.findall(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))


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
