"""Takes secrets out of texts before they are shown or stored."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["redact", "redact_all"]

HIDDEN = "[redacted]"

# Each pattern keeps its group "keep", so that a reader sees what kind of secret stood there.
_SECRETS = tuple(
    re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    for pattern, ignore_case in (
        (
            r"(?P<keep>-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
            False,
        ),
        (r"(?P<keep>://[^\s:/@]{1,200}:)[^\s:/@]{1,200}(?=@)", False),
        (r"(?P<keep>://)[A-Za-z0-9_\-]{16,200}(?=@)", False),
        (
            r"(?P<keep>[?&](?:X-Amz-(?:Signature|Credential|Security-Token)|X-Goog-(?:Signature|Credential)"
            r"|Signature|AWSAccessKeyId|sig|se|sv|token|access_token|key|api_key)=)[^\s&'\"<>]+",
            True,
        ),
        (
            r"(?P<keep>\bauthorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token)\s+)?)[^\s'\",;]{6,}",
            True,
        ),
        (r"(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{12,}", True),
        (
            r"(?P<keep>(?:^|[^A-Za-z])[\w-]{0,40}(?:api[_-]?key|apikey|secret|passwd|password|passphrase|private[_-]?key"
            r"|access[_-]?key(?:[_-]?id)?|auth[_-]?token|access[_-]?token|refresh[_-]?token|_token|client[_-]?secret|credential)"
            r"[\w-]{0,20}['\"]?\s{0,3}(?:=>|[:=])\s{0,3}['\"]?)(?!None\b|null\b|True\b|False\b|\*{3}|<|\[)[^\s'\",;)}\]]{4,}",
            True,
        ),
        (
            r"(?P<keep>\btoken['\"]?\s{0,3}[:=]\s{0,3}['\"]?)(?=[^\s'\",;)]*\d)[A-Za-z0-9._\-]{16,}",
            True,
        ),
        (r"(?P<keep>--(?:password|token|api-key|secret)[ =])\S+", True),
        (r"(?P<keep>\b)(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b", False),
        (r"(?P<keep>\b)(?:hf|api_org)_[A-Za-z0-9]{20,}\b", False),
        (
            r"(?P<keep>\b)(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_\-]{18,})",
            False,
        ),
        (r"(?P<keep>\b)(?:sk|pk|rk)-(?:[A-Za-z]+-)*[A-Za-z0-9_]{20,}\b", False),
        (r"(?P<keep>\b)xox[abposr]-[A-Za-z0-9-]{10,}", False),
        (r"(?P<keep>\b)AIza[A-Za-z0-9_\-]{30,}", False),
        (r"(?P<keep>\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", False),
        (r"(?P<keep>\b(?:wandb|neptune|comet)\S{0,40}[\s:=]+)[0-9a-f]{32,64}\b", True),
    )
)


_SUSPICIOUS = re.compile(
    r"key|token|secret|pass|auth|bearer|credential|://|AKIA|ASIA|AROA|AIDA|hf_|api_org|gh[pousr]_"
    r"|github_pat|glpat|[spr]k-|xox|AIza|eyJ|wandb|neptune|comet|[?&]",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """``text`` with tokens, keys, passwords and signatures of URLs hidden.

    >>> redact("login with password=hunter2x failed")
    'login with password=[redacted] failed'
    """
    if not _SUSPICIOUS.search(text):
        return text
    for pattern in _SECRETS:
        text = pattern.sub(lambda found: f"{found['keep']}{HIDDEN}", text)
    return text


def redact_all(value: Any) -> Any:
    """The same for every text in nested tuples, lists and mappings."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(redact_all(item) for item in value)
    return value
