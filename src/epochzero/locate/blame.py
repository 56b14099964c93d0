"""What a report blames outside of the code: a library, a driver, the GPU, the system, data, configuration.

Every issue template has a section for the environment, so the name of a library alone is no evidence. What
counts is blame: the library in whose code the traceback ends, "works with 1.1 but not with 1.2",
"after upgrading", a CUDA error, a system on which alone it happens, a file that cannot be decoded, a
build. The kinds of cause are those of Rodríguez-Pérez et al. ("Bugs in the wild", ESEC/FSE 2018;
"How bugs are born", EMSE 2020) as Jahan et al. (EMSE 2025, Section 5) use them: environment,
requirement, third-party library.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from epochzero.locate.environment import Environment, is_library, library_name
from epochzero.locate.query import Query

SUSPECTS = ("library", "driver", "gpu", "operating_system", "data", "configuration")
MOST_LINES = 1000
LONGEST_LINE = 300
TITLE_WEIGHT = 2.0
"""A title has the weight of two lines of the text."""

_SYSTEM = (
    r"windows|win ?(?:7|8|10|11|32|64)|mac ?os(?: ?x)?|os ?x|\bmacs?|raspberry ?pi|raspbian|jetson"
    r"|android|ios|arm(?:64|v\d)?|aarch64|power ?pc|ppc64le|s390x|freebsd|centos|rhel|red ?hat"
    r"|alpine|wsl2?|colab|apple silicon|m1"
)
_WORKS = r"(?:works?|worked|working|runs?|fine|ok|okay|succeeds?|passes)"
_FAILS = r"(?:fail(?:s|ed|ing|ure)?|crash(?:es|ed)?|broken|breaks?|error|wrong|hangs?|incorrect|does ?n.t work|not work(?:ing)?|bug|issue|problem)"

_TEXTS: dict[str, tuple[str, float, str]] = {
    # name: (suspect, weight, pattern); `name` in a pattern is what exactly is blamed
    "upgrade": (
        "library",
        2.0,
        r"\b(?:after|since|when|by|upon)\s+(?:\w+\s){0,2}?(?:upgrad|updat|downgrad|migrat|bump|switch)\w*(?:\s+(?:to|from|the|my))*\s+(?P<name>[A-Za-z][\w.-]{1,40})",
    ),
    "incompatible": (
        "library",
        2.0,
        r"\b(?:in|not |un)-?compatib\w*\s+(?:with|to)\s+(?:the\s+|new\s+|latest\s+)*(?P<name>[A-Za-z][\w.-]{1,40})",
    ),
    "other_version": (
        "library",
        2.0,
        rf"\b{_WORKS}\s+(?:\w+\s)?(?:with|on|in|under|using|for)\s+(?:version\s+)?(?P<name>[A-Za-z][\w.-]*?)?\s*v?\d+\.\d+",
    ),
    "import": (
        "library",
        1.5,
        r"(?:ImportError|ModuleNotFoundError): (?:cannot import name [^\n]* from|No module named) ['\"]?(?P<name>\w+)",
    ),
    "binary": (
        "library",
        1.5,
        r"undefined symbol|DLL load failed|cannot open shared object|version `?GLIBC|symbol not found|binary incompatib",
    ),
    "deprecated": (
        "library",
        1.0,
        r"\b(?:deprecat\w+|has been removed|no longer (?:supported|available|exists))\b",
    ),
    "security": (
        "library",
        1.5,
        r"\bCVE-\d{4}-\d+|\bsecurity (?:risk|vulnerabilit\w+|advisory)",
    ),
    "needs_version": (
        "library",
        1.0,
        r"\b(?:requires?|needs?|depends? on|pin(?:ned)?|fixed)\s+(?:\w+\s){0,4}?(?P<name>[A-Za-z][\w-]*)\s*(?:[<>=!~]=?|version|to be)\s*v?\d",
    ),
    "driver": (
        "driver",
        2.0,
        r"(?P<name>CUDA|NVIDIA|GPU|graphics|display)?\s*driver (?:version is|is|not|bug|issue|problem)|nvidia-smi has failed|forward compatibility",
    ),
    "cuda_status": (
        "driver",
        2.0,
        r"\b(?:(?P<name>CUDNN|CUBLAS|CUSOLVER|CUFFT|NCCL)_STATUS_(?!SUCCESS)\w+|cudaError\w+|CUDA_ERROR_\w+|CUDA (?:runtime )?error\b|NCCL error|unhandled cuda error)",
    ),
    "cuda_version": (
        "driver",
        1.0,
        r"\b(?:with|on|for|under|using|support(?:s|ed)?)\s+(?P<name>cuda|cudnn)\s*-?v?\d",
    ),
    "no_kernel": (
        "gpu",
        2.0,
        r"no kernel image is available|compute capability|\bsm_\d\d\b|too many resources requested|gpu architecture",
    ),
    "gpu_memory": (
        "gpu",
        2.0,
        r"(?:cuda|gpu|cudamalloc|device)\b[^\n]{0,40}out of memory|out of memory[^\n]{0,40}(?:cuda|gpu)|\bOOM\b|ResourceExhausted|memory leak[^\n]{0,40}gpu|gpu memory",
    ),
    "gpu_only": (
        "gpu",
        1.0,
        r"\b(?:only|just)\s+(?:\w+\s){0,2}?(?:on|with)\s+(?:\w+\s)?gpus?\b|works? (?:fine )?on (?:the )?cpu",
    ),
    "on_system": (
        "operating_system",
        1.5,
        rf"\b{_FAILS}\s+(?:\w+\s){{0,3}}?(?:on|in|under|for)\s+(?:\w+\s)?(?P<name>{_SYSTEM})\b|\b(?:only|just)\s+(?:\w+\s){{0,2}}?(?:on|under)\s+(?P<other>{_SYSTEM})\b",
    ),
    "windows_error": (
        "operating_system",
        1.5,
        r"(?P<name>WinError)|\b(?:error C|LNK)\d{4}\b|\w\.dll\b",
    ),
    "corrupt": (
        "data",
        2.0,
        r"\b(?:corrupt(?:ed)?|truncated|malformed|damaged)\b(?:\s+\w+){0,2}?\s+(?P<name>file|image|data|dataset|archive|zip|jpeg|png|record|download|checkpoint)\w*",
    ),
    "undecodable": (
        "data",
        1.5,
        r"UnicodeDecodeError|UnpicklingError|invalid load key|BadZipFile|not a (?:zip|gzip|gzipped|JPEG|PNG)\b|cannot identify image file|JSONDecodeError|ParserError|invalid (?:utf|byte)",
    ),
    "download": (
        "data",
        1.5,
        r"\b(?:HTTP(?: Error)? ?(?:403|404|503)|404 (?:error|not found|page)|(?:broken|dead|invalid) (?:link|url)s?|download(?:ing)? (?:fail|error|link)|(?:link|url)s?\s+(?:is|are)?\s*(?:broken|dead|invalid)|unable to download|URLError|ConnectionError|SSLError)",
    ),
    "data_file": (
        "data",
        1.0,
        r"\b(?:dataset|data set|pre-?trained (?:model|weights)|checkpoint)s?\s+(?:\w+\s){0,2}?(?:not found|missing|unavailable|no longer|moved)",
    ),
    "ci": (
        "configuration",
        2.0,
        r"(?<![\w/])(?:(?-i:CI)(?!/)|travis|jenkins|circle-?ci|appveyor|azure pipelines?|github actions?|nightly (?:build|test)s?|unix-cpu|buildkite)\b|\bflaky\b",
    ),
    "build": (
        "configuration",
        1.5,
        r"\b(?:c?make|build(?:ing|s)?|compil(?:e|es|ing|ation)|link(?:er|ing)|install(?:ation|ing)?)\s+(?:\w+\s){0,3}?(?:fail\w*|error\w*|broken|breaks?|issue|problem)|\b(?:fail\w*|error\w*|unable|can ?not|can.t)\s+(?:\w+\s){0,3}?(?:build|compil\w+|install)|fatal error: [\w./]+\.h|undefined reference|\bld returned|CMake Error|\*\*\* \[",
    ),
    "build_file": (
        "configuration",
        1.0,
        r"(?<![\w.-])(?P<name>(?:CMakeLists\.txt|Makefile|Dockerfile\S{0,30}|Jenkinsfile|setup\.(?:py|cfg)|requirements[\w-]*\.txt|environment\.ya?ml|pyproject\.toml|tox\.ini|package\.json|MANIFEST\.in))\b",
    ),
    "build_flag": (
        "configuration",
        1.0,
        r"\b(?P<name>(?-i:(?:USE|WITH|BUILD|ENABLE)_[A-Z0-9_]{2,30}))\s*=",
    ),
    "packaging": (
        "configuration",
        1.5,
        r"\bpip3? install\b[^\n]{0,60}(?:fail|error)|Could not find a version that satisfies|No matching distribution|Failed building wheel|egg_info|\b(?:wheel|package|pypi|conda|npm|maven|docker image)s?\s+(?:\w+\s){0,2}?(?:is |are )?(?:missing|broken|fail\w*|outdated|unavailable|not found|not included)",
    ),
}
_PATTERNS = {
    name: (suspect, weight, re.compile(pattern, re.IGNORECASE))
    for name, (suspect, weight, pattern) in _TEXTS.items()
}
RULES = ("foreign_frame", "library_in_title", "system_in_title", "gpu_in_title", *_TEXTS)
"""The names of all rules: what `Blame.rule` can be."""

_LISTING = re.compile(r'File "|^\[bt\]|^#\d+ |Warning:|(?:site|dist)-packages')
"""Lines of stack traces and warnings: they name much and blame nothing."""
_PACKAGE = re.compile(r"(?:site|dist)-packages/(?P<name>[A-Za-z]\w*)")
_HARNESSES = """
click concurrent distutils fire hydra invoke ipykernel IPython joblib multiprocess nose notebook
pkg_resources pluggy _pytest py pytest runpy setuptools six unittest tqdm
"""
_HARNESS = frozenset(_HARNESSES.split())
"""Packages in whose code a traceback may end or begin without any fault of theirs."""


@dataclass(frozen=True, slots=True)
class Blame:
    """One thing in a report that points outside of the code.

    Attributes:
        rule: which of `RULES` found it.
        suspect: one of `SUSPECTS`.
        name: of the library, driver or device, with its version if the report contains it; may be empty.
        weight: strength of the evidence; only for comparisons.
        line: the line of the report.
    """

    rule: str
    suspect: str
    name: str
    weight: float
    line: str


def blames(query: Query, environment: Environment, own: Collection[str] = ()) -> tuple[Blame, ...]:
    """Everything that a report blames; each rule once, at its first line.

    Args:
        query: the report.
        environment: what `read_environment` found in it.
        own: top-level packages of the repository that is searched: they are no one else's code.
    """
    mine = frozenset(map(library_name, own))
    found: dict[str, Blame] = {}
    for blame in (
        *_foreign_frame(query, environment, mine),
        *_in_title(query, environment, mine),
        *_in_lines(query, environment, mine),
    ):
        found.setdefault(blame.rule, blame)
    return tuple(found.values())


def prime_suspect(found: Collection[Blame]) -> tuple[Blame, ...]:
    """The blames of the suspect with the most evidence, strongest first; empty if there is none."""
    total = {s: sum(b.weight for b in found if b.suspect == s) for s in SUSPECTS}
    most = max(SUSPECTS, key=total.__getitem__)
    against = (blame for blame in found if blame.suspect == most)
    return tuple(sorted(against, key=lambda blame: -blame.weight))


def _foreign_frame(query: Query, environment: Environment, mine: frozenset[str]) -> Iterator[Blame]:
    """The library in whose installed code the last traceback ends."""
    packages = [_PACKAGE.search(frame.file) for frame in query.frames]
    if not packages or (last := packages[-1]) is None or last["name"] in _HARNESS:
        return
    name = library_name(last["name"])
    if name not in mine:
        file = query.frames[-1].file
        line = next((line for line in _lines(query.texts["all"]) if file in _slashed(line)), file)
        if "Warning:" in line:
            return
        yield Blame("foreign_frame", "library", _versioned(name, environment), 2.0, line)


def _in_title(query: Query, environment: Environment, mine: frozenset[str]) -> Iterator[Blame]:
    """A title that names another library with its version, a system, or a GPU."""
    title = query.report.title.strip()
    here = [mention for mention in environment.mentions if mention.line == title]
    for mention in here:
        if mention.kind in ("library", "python") and mention.name not in mine:
            name = f"{mention.name} {mention.version}".strip()
            yield Blame("library_in_title", "library", name, 2.0, title)
        elif mention.kind == "gpu":
            name = f"{mention.name} {mention.version}".strip()
            yield Blame("gpu_in_title", "gpu", name, 2.0, title)
    if named := re.search(rf"\b(?:{_SYSTEM})\b", title, re.IGNORECASE):
        name = _versioned(named[0], environment)
        yield Blame("system_in_title", "operating_system", name, 2.0, title)


def _in_lines(query: Query, environment: Environment, mine: frozenset[str]) -> Iterator[Blame]:
    """What the rules find in the title and in the text, code left out."""
    title = query.report.title.strip()
    parts = (title, query.texts["prose"], query.texts["traceback"], query.texts["error"])
    lines = dict.fromkeys(line for part in parts for line in _lines(part))
    for line in lines:
        if _LISTING.search(line):
            continue
        for rule, (suspect, weight, pattern) in _PATTERNS.items():
            if not (match := pattern.search(line)):
                continue
            named = next((value for value in match.groupdict().values() if value), "").strip(".-")
            if suspect == "library" and library_name(named) in mine:
                continue
            if suspect == "library" and not is_library(named) and rule != "import":
                named = ""  # the word after "since upgrading to" need not be a name
            heavier = TITLE_WEIGHT if line == title else 1.0
            name = _name_of(suspect, named, environment)
            yield Blame(rule, suspect, name, weight * heavier, line)


def _name_of(suspect: str, named: str, environment: Environment) -> str:
    """What is blamed; details that the line lacks are taken from the environment."""
    if suspect == "gpu" and not named:
        return next((m.name for m in environment.of("gpu")), "")
    if suspect == "driver" and not named:
        cuda = (*environment.of("driver"), *environment.of("cuda"))
        return next((f"{m.name} {m.version}".strip() for m in cuda), "")
    return _versioned(named, environment)


def _versioned(name: str, environment: Environment) -> str:
    """A name with its version according to the report."""
    wanted = library_name(name)
    for mention in environment.mentions:
        if mention.version and wanted and wanted == library_name(mention.name):
            return f"{name} {mention.version}"
    return name


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n")[:MOST_LINES]:
        if stripped := line.strip()[:LONGEST_LINE]:
            yield stripped


def _slashed(line: str) -> str:
    return line.replace("\\", "/")
