"""Redacts a log that arrives in arbitrary parts, so that no secret is stored because it was split.

Complete lines are redacted. The unfinished last line is held back, together with a preceding line that ends with
the name of a secret, and a private key until its end. A very long line is redacted in sections: a section ends where
redacting both sides equals redacting the whole, and never within the last received bytes, which may be the start of a
secret.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from epochzero.redact import HIDDEN, redact_log

HELD_MOST = 16 << 10
"""The longest common private key, RSA with 16,384 bits, has 12.6 kB as PEM."""
_OVERLAP = 4 << 10
"""Longer than the tokens of all known issuers."""
_SEAMS = 32
_NAMES = 64
"""Maximum number of consecutive lines that may each be a value and a name; limits the time for a log of names only."""
_HIDDEN = HIDDEN.encode()
_VALUE = b"=Pr0be12345"
"""Matches if the preceding line ends with the name of a secret, whose value may be in the next line."""
_KEY_MARK = b"PRIVATE KEY-----"
_KEY = re.compile(
    rb"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----(?!\[redacted\]).*?"
    rb"(?P<end>-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)


class Unfinished(NamedTuple):
    """The end of a log that cannot be redacted yet.

    Attributes:
        held: its bytes as received, at most `HELD_MOST`.
        hides: whether the rest of the line is dropped, because it belongs to a longer secret.
    """

    held: bytes = b""
    hides: bool = False


def redact_piece(before: Unfinished, data: bytes) -> tuple[bytes, Unfinished]:
    """Redacts the next part of a log.

    Args:
        before: the unredacted rest of the earlier parts.
        data: the part.

    Returns:
        Redacted bytes that continue those of the earlier parts, and the new rest.
    """
    held, hides = before
    text = held + data
    redacted: list[bytes] = []
    while True:
        if hides:
            end = text.find(b"\n")
            if end < 0:
                return b"".join(redacted), Unfinished(hides=True)
            text, hides = text[end:], False
        cut = _complete(text)
        redacted.append(redact_log(text[:cut]))
        text = text[cut:]
        if len(text) <= HELD_MOST:
            return b"".join(redacted), Unfinished(text)
        window = text[: 2 * HELD_MOST]
        seam = _seam(window)
        if seam is None:
            redacted.append(redact_log(window).removesuffix(_HIDDEN) + _HIDDEN)
            hides, seam = True, len(window)
        else:
            redacted.append(redact_log(text[:seam]))
        text = text[seam:]


def _complete(text: bytes) -> int:
    """Length of the lines that later data cannot change."""
    cut = _before_open_key(text)
    for _ in range(_NAMES):
        last = text.rfind(b"\n", 0, max(0, cut - 1)) + 1
        if not redact_log(text[last:cut] + _VALUE).endswith(_HIDDEN):
            break
        cut = last
    return cut


def _before_open_key(text: bytes) -> int:
    """Length of the complete lines, without a private key that may continue."""
    cut = text.rfind(b"\n") + 1
    if _KEY_MARK not in text:
        return cut
    line = end = 0
    for key in _KEY.finditer(text):
        # If a key starts in the line in which another ends, both stay together.
        begin = text.rfind(b"\n", 0, key.start()) + 1
        line, end = begin if begin >= end else line, key.end()
        if end > cut or not key["end"]:
            return line
    return cut


def _seam(text: bytes) -> int | None:
    """Position at which a long line can be split, preferably before a space; None within one long secret."""
    whole = redact_log(text)
    place = len(text) - _OVERLAP
    for _ in range(_SEAMS):
        if place <= 0:
            return None
        if redact_log(text[:place]) + redact_log(text[place:]) == whole:
            return place
        place = text.rfind(b" ", 0, place)
    return None
