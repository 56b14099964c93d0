"""Calls that download from the network, and the caches they use: ``downloads.toml``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from epochzero.check.paths.accesses import is_true
from epochzero.check.paths.analysis import PathAnalysis
from epochzero.check.paths.catalogue import canonical
from epochzero.check.paths.text import is_remote, path_text
from epochzero.check.program.events import LibraryCall, argument
from epochzero.check.program.model import Program
from epochzero.check.program.values import Constant
from epochzero.check.tables import read_table
from epochzero.check.target.model import Target

_CLASS = re.compile(r"[a-z][\w.]*\.[A-Za-z]\w*$")
_OFFLINE = {
    "huggingface": ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"),
    "": ("WANDB_MODE", "WANDB_DISABLED"),
}
_CACHES = {
    "huggingface": (("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "HF_HOME",
                     "HF_DATASETS_CACHE", "XDG_CACHE_HOME"), ".cache/huggingface"),
    "torch": (("TORCH_HOME", "XDG_CACHE_HOME"), ".cache/torch"),
    "nltk": (("NLTK_DATA",), "nltk_data"),
    "keras": (("KERAS_HOME",), ".keras"),
    "sklearn": (("SCIKIT_LEARN_DATA",), "scikit_learn_data"),
    "tfds": (("TFDS_DATA_DIR",), "tensorflow_datasets"),
    "gensim": (("GENSIM_DATA_DIR",), "gensim-data"),
}  # fmt: skip
"""By library: variables that set its cache directory, and its location in the home directory."""
_LOCAL_HOSTS = ("localhost", "127.", "0.0.0.0", "[::1]", "10.", "192.168.", "172.")


@dataclass(frozen=True, slots=True)
class Fetch:
    """What a call may download. The fields are those of ``downloads.toml``; `host` is its ``from``."""

    host: str = ""
    at: int | None = None
    path: str = ""
    local: bool = False
    when: str = ""
    when_at: int | None = None
    default: bool = False
    folder: int | None = None
    cache: str = ""
    hard: bool = True


@dataclass(frozen=True, slots=True)
class Download:
    """A call that certainly uses the network.

    Attributes:
        call: the call.
        fetch: entry of the catalogue.
        host: host that it contacts.
        what: what it downloads, as text for users; empty if unknown.
    """

    call: LibraryCall
    fetch: Fetch
    host: str
    what: str


@cache
def downloads() -> Mapping[str, Fetch]:
    """The known downloads by name, in the order of the file."""
    data = read_table(__package__, "downloads.toml")
    return {name: Fetch(host=value.pop("from", ""), **value) for name, value in data.items()}


@cache
def _fetch(name: str) -> Fetch | None:
    name, known = canonical(name), downloads()
    if name in known:
        return known[name]
    for pattern, fetch in known.items():
        if "*" in pattern and fnmatchcase(name, pattern):
            if pattern.endswith("*") and not _CLASS.match(name):
                return None
            # Transforms and weights of torchvision are not models.
            return None if name.endswith(("_Weights", "FakeData", "Folder")) else fetch
    return None


def downloads_of(program: Program, target: Target, paths: PathAnalysis) -> Iterator[Download]:
    """The calls that certainly use the network, without those whose data exist here."""
    for call in program.calls:
        fetch = _fetch(call.name)
        if fetch is None or not call.complete:
            continue
        text = path_text(argument(call, fetch.at, fetch.path)) if fetch.path else None
        what = text.known if text and text.known else ""
        host = fetch.host or _host(what)
        if (fetch.path and not what) or not host or host.startswith(_LOCAL_HOSTS):
            continue
        if _is_offline(program, target, fetch, call) or not _fetches(call, fetch):
            continue
        if not _has(call, fetch, what, paths):
            yield Download(call, fetch, host, what)


def _fetches(call: LibraryCall, fetch: Fetch) -> bool:
    """Whether the parameter that decides it certainly enables the download."""
    if not fetch.when:
        return True
    value = argument(call, fetch.when_at, fetch.when)
    if value is None and fetch.when == "weights":
        value = call.keywords.get("pretrained")
    if value is None:
        return fetch.default
    if isinstance(value, Constant):
        return bool(value.value) and not (isinstance(value.value, str) and "/" in value.value)
    # ``ResNet50_Weights.DEFAULT`` and similar values.
    name = getattr(value, "name", "") or getattr(value, "made_by", "")
    return fetch.when == "weights" and "_Weights" in name


def _has(call: LibraryCall, fetch: Fetch, what: str, paths: PathAnalysis) -> bool:
    """Whether the downloaded data exist, or may exist, in the file system already."""
    if is_true(call.keywords.get("local_files_only")) is not False:
        return True
    if fetch.local:
        path = paths.platform.absolute(what)
        builders = what in ("csv", "json", "parquet", "text", "imagefolder", "audiofolder", "arrow")
        own = what.startswith((".", "/", "~")) or what.count("/") > 1 or builders
        return (
            own
            or paths.there(path) is not False
            or call.keywords.get("source") == Constant("local")
        )
    if fetch.folder is not None:
        root = path_text(argument(call, fetch.folder, "root"))
        if root is None or root.known is None or root.known.startswith("~"):
            return root is not None
        path, name = paths.platform.absolute(root.known), call.name.rpartition(".")[2]
        return any(
            paths.platform.there(posixpath.join(path, text)) is not False
            for text in (name, name.lower(), _DATA_FOLDERS.get(name, name))
        )
    return False


_DATA_FOLDERS = {
    "CIFAR10": "cifar-10-batches-py",
    "CIFAR100": "cifar-100-python",
    "STL10": "stl10_binary",
    "SVHN": "train_32x32.mat",
    "VOCDetection": "VOCdevkit",
    "VOCSegmentation": "VOCdevkit",
    "Flowers102": "flowers-102",
    "Food101": "food-101",
    "OxfordIIITPet": "oxford-iiit-pet",
    "CelebA": "celeba",
    "Caltech101": "caltech101",
    "StanfordCars": "stanford_cars",
}
"""Directories of torchvision data sets below their root, if they differ from the name."""


def _is_offline(program: Program, target: Target, fetch: Fetch, call: LibraryCall) -> bool:
    """Whether the library is set to work offline."""
    names = _OFFLINE.get(fetch.cache, ())
    mode = call.keywords.get("mode")
    if isinstance(mode, Constant) and mode.value in ("offline", "disabled"):
        return True
    return any(_variable(program, target, name) for name in names)


def _variable(program: Program, target: Target, name: str) -> bool:
    value = program.job.environment.get(name, (target.environment or {}).get(name, ""))
    set_here = any(
        look.name == name and look.stored for look in program.lookups if look.item
    ) or any(
        call.name == "os.environ.setdefault" and call.arguments[:1] and _is(call, name)
        for call in program.calls
    )
    return (
        set_here
        or (name in program.job.environment and value is None)
        or (str(value).lower() not in ("", "0", "false", "no", "none", "online"))
    )


def _is(call: LibraryCall, name: str) -> bool:
    first = call.arguments[0]
    return isinstance(first, Constant) and first.value == name


def _host(what: str) -> str:
    """The host of a URL; empty if it is not a URL."""
    if not is_remote(what) or not what.startswith(("http:", "https:", "ftp:")):
        return ""
    return what.partition("//")[2].partition("/")[0].rpartition("@")[2]


def cache_folder(program: Program, target: Target, library: str) -> tuple[str, bool] | None:
    """The cache directory of a library, and whether a variable sets it.

    Returns:
        None if it is unknown.
    """
    variables, below = _CACHES.get(library, ((), ""))
    for name in variables:
        if _variable(program, target, name):
            value = program.job.environment.get(name, (target.environment or {}).get(name))
            return (value, True) if value and value.startswith("/") else None
    home = (target.environment or {}).get("HOME") or (target.user.home if target.user else "")
    return (posixpath.join(home, below), False) if below and home else None
