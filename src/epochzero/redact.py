"""Takes secrets out of texts before they are shown or stored."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochzero.logs.patterns import PatternSet

__all__ = ["redact", "redact_all", "redact_command", "redact_log"]

HIDDEN = "[redacted]"

# What a secret looks like, by a lower-case text that stands in every one of its kind: most texts
# hold none, and are passed on after a few substring searches. The group "keep" of a pattern stays,
# so that a reader sees what stood there.
_NAMED = (
    r"(?:api[_-]?key|apikey|secret|passwd|password|passphrase|private[_-]?key"
    r"|access[_-]?key(?:[_-]?id)?|auth[_-]?token|access[_-]?token|refresh[_-]?token"
    r"|client[_-]?secret|credential)"
)
# A class such as NoCredentialsError is followed by its message.
_ASSIGNED = (
    r"(?P<keep>(?:^|[^A-Za-z])(?![\w-]{0,60}(?:Error|Exception|NotFound|Expired|Denied):)"
    rf"[\w-]{{0,40}}{_NAMED}[\w-]{{0,20}}['\"]?\s{{0,3}}(?:=>|[:=])"
    r"\s{0,3}['\"]?)(?!None\b|null\b|True\b|False\b|\*{3}|<|\[)[^\s'\",;)}\]]{4,}"
)
# In these logs most tokens are words of a text (eos_token_id=50256), so that a name alone is not
# enough unless it is that of an environment variable.
_TOKEN = (
    r"(?P<keep>(?:^|[^A-Za-z])[\w-]{0,40}token['\"]?\s{0,3}(?:=>|[:=])\s{0,3}['\"]?)"
    r"(?=[^\s'\",;)]*\d)(?=[^\s'\",;)]*[A-Za-z])[A-Za-z0-9._~+/\-]{8,}=*"
)
_TOKEN_VARIABLE = (
    r"(?P<keep>\b[A-Z0-9_]{1,40}_TOKEN['\"]?\s?[:=]\s?['\"]?)(?!None\b|<|\[)[^\s'\",;)}\]]{4,}"
)
_QUERY = (
    r"(?P<keep>[?&](?:X-Amz-(?:Signature|Credential|Security-Token)|X-Goog-(?:Signature|Credential)"
    r"|Signature|AWSAccessKeyId|sig|se|sv|token|access_token|key|api_key)=)[^\s&'\"<>]+"
)
_SECRETS = tuple(
    (triggers, pattern, re.IGNORECASE if ignore_case else re.NOFLAG)
    for triggers, pattern, ignore_case in (
        (
            ("private key-----",),
            r"(?P<keep>-----BEGIN [A-Z ]*PRIVATE KEY-----)"
            r"(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
            False,
        ),
        (("://",), r"(?P<keep>://[^\s:/@]{0,200}:)[^\s:/@]{1,200}(?=@)", False),
        (("://",), r"(?P<keep>://)[A-Za-z0-9_\-]{16,200}(?=@)", False),
        (("?", "&"), _QUERY, True),
        (
            ("authorization",),
            r"(?P<keep>\bauthorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token)\s+)?)"
            r"[^\s'\",;]{6,}",
            True,
        ),
        (("bearer",), r"(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{12,}", True),
        (("key", "secret", "pass", "token", "credential"), _ASSIGNED, True),
        (("token",), _TOKEN, True),
        (("_token",), _TOKEN_VARIABLE, False),
        (
            ("--password", "--token", "--api-key", "--secret"),
            r"(?P<keep>--(?:password|token|api-key|secret)[ =])\S+",
            True,
        ),
        (("akia", "asia", "aroa", "aida"), r"(?P<keep>\b)A(?:KI|SI|RO|ID)A[A-Z0-9]{16}\b", False),
        (("hf_", "api_org_"), r"(?P<keep>\b)(?:hf|api_org)_[A-Za-z0-9]{20,}\b", False),
        (
            ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
            r"(?P<keep>\b)(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}"
            r"|glpat-[A-Za-z0-9_\-]{18,})",
            False,
        ),
        (
            ("sk-", "pk-", "rk-"),
            r"(?P<keep>\b)(?:sk|pk|rk)-(?:[A-Za-z]+-)*[A-Za-z0-9_]{20,}\b",
            False,
        ),
        (("ez_",), r"(?P<keep>\b)ez_[A-Za-z0-9_-]{40,}", False),
        (("xox",), r"(?P<keep>\b)xox[abposr]-[A-Za-z0-9-]{10,}", False),
        (("aiza",), r"(?P<keep>\b)AIza[A-Za-z0-9_\-]{30,}", False),
        (
            ("eyj",),
            r"(?P<keep>\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
            False,
        ),
        (
            ("wandb", "neptune", "comet"),
            r"(?P<keep>\b(?:wandb|neptune|comet)\S{0,40}[\s:=]+(?:(?:re)?login[\s:=]+)?"
            r"(?:with[\s:=]+)?(?:(?:api[ _-])?key[\s:=]+)?)[0-9a-f]{32,64}\b",
            True,
        ),
    )
)


# Many harmless texts hold these; there is nothing to hide where nothing is assigned to them.
_COMMON = frozenset(("key", "secret", "pass", "token", "credential"))
_WORDS = sorted({word for triggers, _, _ in _SECRETS for word in triggers})
_ASSIGNMENT = r"[\w-]{0,60}['\"]?\s{0,3}[:=]"
_SUSPECT = [word + _ASSIGNMENT if word in _COMMON else re.escape(word) for word in _WORDS]
_ANY = re.compile("|".join(_SUSPECT))
_KEY_BLOCK = _WORDS.index("private key-----")
_scanning = threading.Lock()
"""The scanner's memory is one for all scans."""


def redact(text: str) -> str:
    """``text`` with tokens, keys, passwords and signatures of URLs hidden.

    >>> redact("login with password=hunter2x failed")
    'login with password=[redacted] failed'
    """
    lowered = text.lower()
    if not _ANY.search(lowered):
        return text
    for triggers, pattern, flags in _SECRETS:
        if any(trigger in lowered for trigger in triggers):
            text = _compiled(pattern, flags).sub(lambda found: f"{found['keep']}{HIDDEN}", text)
    return text


@cache  # All of them take milliseconds to compile, most are never needed.
def _compiled(pattern: str, flags: re.RegexFlag) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def redact_log(data: bytes) -> bytes:
    """The same for whole lines of a log; a line without a secret keeps its bytes.

    >>> redact_log(b"step 1\\npassword=hunter2x\\n")
    b'step 1\\npassword=[redacted]\\n'
    """
    with _scanning:
        suspect = _scanner().spans(data)
    if any(number == _KEY_BLOCK for _, _, number in suspect):
        return _redact_bytes(data)  # Of many lines.
    pieces: list[bytes] = []
    done = 0
    for begin, end in _whole_lines(data, suspect):
        pieces += (data[done:begin], _redact_bytes(data[begin:end]))
        done = end
    return b"".join((*pieces, data[done:])) if pieces else data


def _whole_lines(data: bytes, suspect: Iterable[tuple[int, int, int]]) -> Sequence[tuple[int, int]]:
    """Where the lines with suspect words begin and end; those that a match ties together as one."""
    lines: list[tuple[int, int]] = []
    for start, end, _ in suspect:
        if lines and lines[-1][0] <= start and end <= lines[-1][1]:
            continue
        begin = data.rfind(b"\n", 0, start) + 1
        while lines and begin < lines[-1][1]:
            begin = min(begin, lines.pop()[0])
        lines.append((begin, data.find(b"\n", end) + 1 or len(data)))
    return lines


@cache
def _scanner() -> PatternSet:
    """The same words for the bytes of logs. Short texts are searched before it is even loaded."""
    from epochzero.logs.patterns import PatternSet

    return PatternSet([b"(?i)" + pattern.encode() for pattern in _SUSPECT], starts=True)


def _redact_bytes(data: bytes) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    return redact(text).encode("utf-8", "surrogateescape")


def redact_all(value: Any) -> Any:
    """The same for every text in nested tuples, lists and mappings."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(redact_all(item) for item in value)
    return value


def redact_command(words: Sequence[str]) -> tuple[str, ...]:
    """The same for a command line, where a secret may be the word after its option.

    >>> redact_command(["python", "train.py", "--api-key", "k3y-of-mine"])
    ('python', 'train.py', '--api-key', '[redacted]')
    """
    return tuple(
        HIDDEN if _is_secret_of(before, word) else redact(word)
        for before, word in zip(("", *words), words, strict=False)
    )


def _is_secret_of(option: str, word: str) -> bool:
    assigned = f"{option}={word}"
    return option.startswith("-") and "=" not in option and redact(assigned) != assigned
