"""Takes secrets out of texts before they are shown or stored."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from epochzero.logs.patterns import PatternSet


HIDDEN = "[redacted]"


class _RedactionRule(NamedTuple):
    """A kind of secret.

    Attributes:
        triggers: lower-case texts, one of which occurs in every secret of this kind. Most texts hold
            none and are passed on after a few substring searches.
        pattern: of the secret; what its group "keep" matches stays, so that a reader sees what
            stood there.
        flags: of the pattern.
        suspects: what lines of logs with such a secret hold, in the syntax of `PatternSet`; the
            triggers when None.
    """

    triggers: tuple[str, ...]
    pattern: str
    flags: re.RegexFlag = re.NOFLAG
    suspects: tuple[str, ...] | None = None


_NAMED = (
    r"(?:api[_-]?key|apikey|secret|passwd|password|passphrase|access[_-]?key(?:[_-]?id)?"
    r"|(?:private|account|auth|encryption|signing|subscription|kaggle)[_-]?key"
    r"|(?:api|auth|access|refresh|id|identity)[_-]?token|credential)"
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
_VARIABLE = (
    r"(?P<keep>\b[A-Z0-9_]{1,40}_(?:TOKEN|PAT|PASS|PWD)['\"]?\s?[:=]\s?['\"]?)"
    r"(?!None\b|<|\[)[^\s'\",;)}\]]{4,}"
)
# Of tokens only those for access: --eos-token is followed by a word.
_OPTION = (
    r"(?P<keep>(?<![\w-])--(?:token|[\w-]{0,40}(?:password|passwd|secret|api[_-]?key|secret[_-]?key|access[_-]?key"
    r"|(?:api|auth|access|bearer|bot|hf|hub|job|personal|private|refresh|service|session|user|github"
    r"|gitlab|slack|wandb|neptune|comet)[_-]?token))(?:=|['\"]?,?[ ])['\"]?)(?!-)"
    r"(?:(?<=['\"])[^'\"\n]+|\S+)"
)
_QUERY = (
    r"(?P<keep>[?&](?:X-Amz-(?:Signature|Credential|Security-Token)|X-Goog-(?:Signature|Credential)"
    r"|Signature|AWSAccessKeyId|sig|se|sv|token|access_token|key|api_key)=)[^\s&'\"<>]+"
)
_LETTERS, _WORD, _HEX = "[A-Za-z0-9]", r"[\w-]", "[0-9a-f]"
# What issuers put in front of their secrets so that scanners find them, as their documentation says;
# behind it stand so many characters of an alphabet.
_ISSUED = (
    ("hf_ api_org_ npm_ r8_ gsk_ rpa_ pul- lin_api_ rubygems_ pplx- NRAK- CFPAT-", _LETTERS, 20),
    ("fw_ esecret_ xai- sk_live_ sk_test_ rk_live_ rk_test_ whsec_", _LETTERS, 24),
    ("ghp_ gho_ ghu_ ghs_ ghr_ glsa_ shpat_ shpca_ shppa_ shpss_", r"\w", 30),
    ("github_pat_ wandb_v1_ nvapi- pscale_tkn_ pypi-AgE lsv2_pt_ lsv2_sk_ pcsk_ AIza", _WORD, 30),
    ("glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- dckr_pat_ dckr_oat_", _WORD, 18),
    ("GOCSPX- ya29. hvs. hvb. hvr. sntrys_ sntryu_ ATATT3 tskey- sq0atp- sq0csp-", _WORD, 20),
    ("ez_", _WORD, 40),
    ("AKIA ASIA AROA AIDA", "[A-Z0-9]", 16),
    ("dapi dop_v1_ doo_v1_ sbp_ SK", _HEX, 32),
    ("SG. dp.pt. dp.st. dp.ct. dp.sa. glc_", "[A-Za-z0-9_.=-]", 40),
    ("xoxa- xoxb- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-", "[A-Za-z0-9.-]", 10),
    ("AGE-SECRET-KEY-1", "[A-Z0-9]", 50),
)


def _issued(prefixes: str, alphabet: str, least: int) -> _RedactionRule:
    either = "|".join(map(re.escape, prefixes.split()))
    return _RedactionRule(
        triggers=tuple(prefixes.lower().split()),
        pattern=rf"(?P<keep>\b)(?:{either}){alphabet}{{{least},}}",
        suspects=(rf"(?-i:{either}){alphabet}{{10}}",),
    )


_ASSIGNMENT = r"[\w-]{0,60}['\"]?\s{0,3}[:=]"
_NEAR = (
    r"(?:key|secret|pass|credential|(?:api|auth|access|refresh|id|identity)[_-]?token)"
    rf"{_ASSIGNMENT}"
)
# Every line of a language model's training counts tokens: only what can be a value of _TOKEN is suspect.
_NEAR_TOKEN = r"token['\"]?\s{0,3}(?:=>|[:=])\s{0,3}['\"]?[\w.~+/-]{8}"
_RULES = (
    _RedactionRule(
        ("private key-----",),
        # What was redacted once has no end: a second time would hide all that follows.
        r"(?P<keep>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?!\[redacted\])"
        r"(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    ),
    _RedactionRule(("://",), r"(?P<keep>://[^\s:/@]{0,200}:)[^\s:/@]{1,200}(?=@)"),
    _RedactionRule(("://",), r"(?P<keep>://)[A-Za-z0-9_\-]{16,200}(?=@)"),
    _RedactionRule(
        ("hooks.slack.com/", "/api/webhooks/", "webhook.office.com/", "/bot", "logic.azure.com"),
        r"(?P<keep>(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks"
        r"|webhook\.office\.com/webhookb2|logic\.azure\.com\S{0,40}/workflows|api\.telegram\.org/bot)/?)"
        r"[^\s'\"<>]{8,}",
    ),
    _RedactionRule(("?", "&"), _QUERY, re.IGNORECASE, (r"[?&][\w-]{2,30}=",)),
    _RedactionRule(
        ("authorization",),
        r"(?P<keep>\bauthorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token)\s+)?)"
        r"[^\s'\",;]{6,}",
        re.IGNORECASE,
    ),
    _RedactionRule(("bearer",), r"(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{12,}", re.IGNORECASE),
    _RedactionRule(
        ("cookie",),
        r"(?P<keep>\b(?:set-)?cookie['\"]?\s{0,3}[:=]\s{0,3}['\"]?)[\w.-]{1,80}=[^\s'\"][^'\"\n]{3,}",
        re.IGNORECASE,
    ),
    # Docker's config.json and .npmrc: a user name and password in base 64
    _RedactionRule(
        ("auth",),
        r"(?P<keep>(?:['\"]auth['\"]\s{0,3}:\s{0,3}['\"]|\b_auth\s{0,3}=\s{0,3}['\"]?))"
        r"[A-Za-z0-9+/_-]{8,}={0,2}",
        suspects=(r"['\"]auth['\"]\s{0,3}:", r"_auth\s{0,3}="),
    ),
    # .netrc, and programs that take both in one option
    _RedactionRule(
        ("machine",),
        r"(?P<keep>\bmachine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+)\S+",
        suspects=(r"machine\s+\S{1,200}\s+login",),
    ),
    _RedactionRule(
        ("curl", "wget", "docker login", "sshpass"),
        r"(?P<keep>\b(?:curl|wget)\b[^\n]{0,400}?\s(?:-u|--user)[ =]['\"]?[^\s:'\"]{1,100}:"
        r"|\b(?:docker login|sshpass)\b[^\n]{0,400}?\s-p[ =]?['\"]?)[^\s'\"]+",
    ),
    _RedactionRule(
        ("key", "secret", "pass", "token", "credential"), _ASSIGNED, re.IGNORECASE, (_NEAR,)
    ),
    _RedactionRule(("token",), _TOKEN, re.IGNORECASE, (_NEAR_TOKEN,)),
    _RedactionRule(
        ("_token", "_pat", "_pass", "_pwd"),
        _VARIABLE,
        suspects=(r"_(?-i:TOKEN|PAT|PASS|PWD)['\"]?\s?[:=]",),
    ),
    _RedactionRule(
        ("--",),
        _OPTION,
        re.IGNORECASE,
        suspects=(
            r"--[\w-]{0,60}(?:password|passwd|token|api[_-]?key|secret|access[_-]?key)['\",= ]",
        ),
    ),
    # OpenAI, Anthropic, OpenRouter and others: words, then the secret
    _RedactionRule(
        ("sk-",),
        r"(?P<keep>\b)sk-(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Za-z])(?:[a-z]{2,12}\d{0,3}-){1,3}[\w-]{20,}",
        suspects=(r"(?-i:sk|pk|rk)-[\w-]{20}",),
    ),
    _RedactionRule(
        ("sk-", "pk-", "rk-"),
        r"(?P<keep>\b)(?:sk|pk|rk)-(?:[A-Za-z]+-)*[A-Za-z0-9_]{20,}\b",
        suspects=(r"(?-i:sk|pk|rk)-[\w-]{20}",),
    ),
    _RedactionRule(
        ("eyj",),
        r"(?P<keep>\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        suspects=(r"(?-i:eyJ)[A-Za-z0-9_-]{8}",),
    ),
    _RedactionRule(
        (":aa",), r"(?P<keep>\b)\d{8,10}:AA[\w-]{33}\b", suspects=(r"\d:(?-i:AA)[\w-]{33}",)
    ),
    _RedactionRule(
        ("-us",), r"(?P<keep>\b)[0-9a-f]{32}-us\d{1,2}\b", suspects=(r"[0-9a-f]{32}-us\d",)
    ),
    _RedactionRule((".atlasv1.",), r"(?P<keep>\b)[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    _RedactionRule(
        ("8q~",), r"(?P<keep>\b)[\w~.-]{3}8Q~[\w~.-]{31,34}", suspects=(r"8Q~[\w~.-]{31}",)
    ),
    # Kaggle's kaggle.json
    _RedactionRule(
        ("key",),
        r"(?P<keep>['\"]key['\"]\s{0,3}:\s{0,3}['\"])[0-9a-f]{32}(?=['\"])",
        suspects=(r"['\"]key['\"]\s{0,3}:",),
    ),
    _RedactionRule(
        ("wandb", "neptune", "comet"),
        r"(?P<keep>\b(?:wandb|neptune|comet)\S{0,40}[\s:=]+(?:(?:re)?login[\s:=]+)?"
        r"(?:with[\s:=]+)?(?:(?:api[ _-])?key[\s:=]+)?)[0-9a-f]{32,64}\b",
        re.IGNORECASE,
    ),
    *(_issued(*issued) for issued in _ISSUED),
)
_TRIGGERS = tuple((trigger, n) for n, rule in enumerate(_RULES) for trigger in rule.triggers)
_SUSPECTS = tuple(
    dict.fromkeys(
        suspect
        for rule in _RULES
        for suspect in rule.suspects or tuple(map(re.escape, rule.triggers))
    )
)
_KEY_BLOCK = _SUSPECTS.index(re.escape("private key-----"))
_scanning = threading.Lock()
"""The scanner's memory is one for all scans."""


def redact(text: str) -> str:
    """``text`` with tokens, keys, passwords and signatures of URLs hidden.

    >>> redact("login with password=hunter2x failed")
    'login with password=[redacted] failed'
    """
    lowered = text.lower()
    for number in sorted({number for trigger, number in _TRIGGERS if trigger in lowered}):
        rule = _RULES[number]
        if _suspect(rule, lowered):
            secret = _compiled(rule.pattern, rule.flags)
            text = secret.sub(lambda found: f"{found['keep']}{HIDDEN}", text)
    return text


def _suspect(rule: _RedactionRule, lowered: str) -> bool:
    """Whether something is assigned to a word such as key, which many harmless texts hold."""
    if rule.suspects not in ((_NEAR,), (_NEAR_TOKEN,)):
        return True
    return bool(_compiled(rule.suspects[0], re.NOFLAG).search(lowered))


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

    return PatternSet([b"(?i)" + pattern.encode() for pattern in _SUSPECTS], starts=True)


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
