"""``target.toml``: a platform as a file that people write and ``epochzero target capture`` creates.

Reading is strict: a misspelt key would silently disable rules. The text is written without a library: it has four kinds of
values, and a library would be one more thing to install on the platform.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

from epochzero.check.target.gpus import capability_of, gpus_of
from epochzero.check.target.model import (
    GPU,
    CallSignature,
    Distribution,
    Mount,
    NetworkAccess,
    Target,
    User,
)
from epochzero.check.target.packages import normalized, read_packages, well_known
from epochzero.check.target.packed_api import Api, packed, unpacked
from epochzero.check.target.signature import signature_of, text_of
from epochzero.errors import InputError, suggestion
from epochzero.file_access import open_file

FORMAT = 1
LARGEST_TARGET_BYTES = 64 << 20
MOST_PLAIN_NAMES = 200

_T = TypeVar("_T")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_MOST = 1 << 63


def read_target(path_or_name: str | Path) -> Target:
    """Read the target in a file, or named by its GPUs (``8 x H100``) if no such file exists.

    Raises:
        InputError: it is neither, or the file is invalid; the message has the file, the key and the valid values.
    """
    path = Path(path_or_name)
    try:
        with open_file(path, pipes=True) as stream:
            data = stream.read(LARGEST_TARGET_BYTES + 1)
    except FileNotFoundError as error:
        if path.suffix or path.parent != Path():
            raise InputError(f"{path}: no such file") from error
        return _preset(str(path_or_name).strip())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > LARGEST_TARGET_BYTES:
        raise InputError(f"{path} is larger than {LARGEST_TARGET_BYTES >> 20} MB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}") from error
    return parse_target(text, str(path), folder=path.parent)


def _preset(text: str) -> Target:
    """GPUs by name; a name alone means one of them, which the target's name states."""
    try:
        gpus = gpus_of(text)
    except InputError as error:
        raise InputError(f"{text}: no such file, and {error}") from error
    alone = len(gpus) == 1 and not text[0].isdigit()
    return Target(f"1 x {text}" if alone else text, gpus=gpus)


def parse_target(text: str, name: str = "<target>", *, folder: Path | None = None) -> Target:
    """Read a target from a text.

    Args:
        text: TOML.
        name: of the file, for messages, and the default name of the target.
        folder: directory of the file that ``packages`` names; None if ``packages`` is not allowed.

    Raises:
        InputError: the text is invalid.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{name} is not TOML: {error}") from error
    reading = _FileReader(name)
    if (version := data.pop("format", None)) != FORMAT:
        found = "missing; add" if version is None else f"is {version!r}; this version reads"
        reading.wrong("format", f"{found} `format = {FORMAT}`")
    packages = data.pop("packages", None)
    packed_api = data.pop("api_packed", None)
    reading.keys("", data, _KEYS)
    fields = {key: _KEYS[key](reading, key, value) for key, value in data.items()}
    fields.setdefault("name", Path(name).stem)
    if packages is not None:
        fields["distributions"] = _with_packages(reading, packages, folder, fields)
        fields.setdefault("python", _python_of(fields["distributions"]))
    if "distributions" in fields:
        fields.setdefault("cuda_of_torch", _cuda_of(fields["distributions"]))
    if packed_api is not None:
        fields["api"] = _unpacked(reading, packed_api, fields)
    return Target(**fields)


class _FileReader:
    """Read values of a file, and name the key in errors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def wrong(self, key: str, allowed: str) -> NoReturn:
        raise InputError(f"{self.name}: {key}: {allowed}")

    def keys(self, key: str, value: Mapping[str, object], allowed: Mapping[str, object]) -> None:
        for each in value:
            if each not in allowed:
                where = f"{key}.{each}" if key else each
                known = [*sorted(allowed), *(() if key else ("api_packed", "packages"))]
                hint = suggestion(each, known, f"allowed are {', '.join(known)}")
                self.wrong(where, f"unknown key; {hint}")

    def text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            self.wrong(key, f"must be a text, not {value!r:.60}")
        return value

    def truth(self, key: str, value: object) -> bool:
        if not isinstance(value, bool):
            self.wrong(key, f"must be true or false, not {value!r:.60}")
        return value

    def number(self, key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
            self.wrong(key, f"must be a whole number from 0 on, not {value!r:.60}")
        return value

    def seconds(self, key: str, value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            self.wrong(key, f"must be a number of seconds above 0, not {value!r:.60}")
        return float(value)

    def size(self, key: str, value: object) -> int:
        if isinstance(value, str):
            try:
                return size_of(value)
            except ValueError as error:
                self.wrong(key, str(error))
        return self.number(key, value)

    def table(self, key: str, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.wrong(key, f"must be a table, not {value!r:.60}")
        return value

    def texts(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.wrong(key, f"must be a list of texts, not {value!r:.60}")
        return tuple(self.text(f"{key}[{n}]", each) for n, each in enumerate(value))

    def names(self, key: str, value: object) -> frozenset[str]:
        return frozenset(self.texts(key, value))

    def record(
        self, key: str, value: object, fields: Mapping[str, Reader], needed: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """A table with these fields."""
        table = self.table(key, value)
        self.keys(key, table, fields)
        for name in needed:
            if name not in table:
                self.wrong(key, f"needs {name}")
        return {name: fields[name](self, f"{key}.{name}", entry) for name, entry in table.items()}

    def records(
        self, key: str, value: object, fields: Mapping[str, Reader], needed: tuple[str, ...] = ()
    ) -> list[dict[str, Any]]:
        """A list of such tables."""
        if not isinstance(value, list):
            self.wrong(key, f"must be [[{key}]] tables, not {value!r:.60}")
        return [self.record(f"{key}[{n}]", each, fields, needed) for n, each in enumerate(value)]


Reader = Callable[[_FileReader, str, Any], Any]


def size_of(text: str) -> int:
    """The bytes of a size such as ``80 GiB``, ``512M`` or ``1.5 TB``.

    ``GB`` is 1,000,000,000 bytes; ``G`` and ``GiB`` are 1,073,741,824, as batch systems count.

    Raises:
        ValueError: the text is not a size.

    >>> size_of("1 GiB")
    1073741824
    """
    found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([KMGTP]?)(i?B)?\s*", text, re.IGNORECASE)
    if found is None:
        raise ValueError(f"must be bytes as a number, or a size such as '80 GiB', not {text!r:.60}")
    number, unit, suffix = found[1], found[2].upper(), (found[3] or "").lower()
    power = _UNITS[unit]
    factor = 1000 ** (power // 10) if unit and suffix == "b" else 1 << power
    return int(float(number) * factor) if "." in number else int(number) * factor


# -- Reading the keys --------------------------------------------------------------------------


def _python(reading: _FileReader, key: str, value: object) -> tuple[int, int, int]:
    # Not a number: 3.10 would be 3.1.
    entry = value if isinstance(value, str) else ""
    found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?[\w.+]*", entry)
    if found is None:
        reading.wrong(key, f"must be a text with a version such as '3.11.4', not {value!r:.60}")
    return int(found[1]), int(found[2]), int(found[3] or 0)


def _distributions(reading: _FileReader, key: str, value: object) -> Mapping[str, Distribution]:
    found = {}
    for name, entry in reading.table(key, value).items():
        plain = normalized(name)
        if isinstance(entry, str):
            found[plain] = Distribution(plain, entry, well_known().get(plain))
        else:
            fields = reading.record(f"{key}.{name}", entry, _DISTRIBUTION, ("version",))
            found[plain] = Distribution(plain, **fields)
    return MappingProxyType(found)


def _api(reading: _FileReader, key: str, value: object) -> Api:
    found = {}
    for module, names in reading.table(key, value).items():
        table = reading.table(f"{key}.{module}", names)
        found[module] = MappingProxyType(
            {name: _signature(reading, f"{key}.{module}.{name}", s) for name, s in table.items()}
        )
    return MappingProxyType(found)


def _signature(reading: _FileReader, key: str, value: object) -> CallSignature | None:
    if value is False:
        return None
    entry = reading.text(key, value)
    if not (entry.startswith("(") and entry.endswith(")")):
        reading.wrong(
            key, f"must be parameters such as '(input, dim=..., *, out=...)', not {entry!r:.60}"
        )
    try:
        return signature_of(entry[1:-1])
    except ValueError as error:
        reading.wrong(key, f"{error}; a default is written as `...`")


def _unpacked(reading: _FileReader, value: object, fields: Mapping[str, Any]) -> Api:
    entry = reading.text("api_packed", value)
    if "api" in fields:
        reading.wrong("api_packed", "cannot be combined with [api]")
    try:
        return unpacked(entry)
    except ValueError as error:
        reading.wrong("api_packed", f"damaged: {error}; capture the target again")


def _with_packages(
    reading: _FileReader, value: object, folder: Path | None, fields: Mapping[str, Any]
) -> Mapping[str, Distribution]:
    if folder is None:
        reading.wrong("packages", "can be given only in a file")
    listed = read_packages(folder / reading.text("packages", value))
    return MappingProxyType({**listed, **fields.get("distributions", {})})


def _gpus(reading: _FileReader, key: str, value: object) -> tuple[GPU, ...]:
    if isinstance(value, str):
        try:
            return gpus_of(value)
        except InputError as error:
            reading.wrong(key, str(error))
    needed = ("model", "memory_bytes")
    found: list[GPU] = []
    for each in reading.records(key, value, _GPU, needed):
        count = each.pop("count", 1)
        if not 0 < count <= 1024:
            reading.wrong(f"{key}.count", f"must be 1 to 1024, not {count}")
        found += [GPU(each["model"], each["memory_bytes"], each.get("capability"))] * count
    return tuple(found)


def _capability(reading: _FileReader, key: str, value: object) -> tuple[int, int]:
    try:
        return capability_of(reading.text(key, value))
    except ValueError as error:
        reading.wrong(key, str(error))


def _mounts(reading: _FileReader, key: str, value: object) -> tuple[Mount, ...]:
    return tuple(Mount(**each) for each in reading.records(key, value, _MOUNT, ("path",)))


def _strings(reading: _FileReader, key: str, value: object) -> Mapping[str, str]:
    table = reading.table(key, value)
    return MappingProxyType({n: reading.text(f"{key}.{n}", entry) for n, entry in table.items()})


def _truths(reading: _FileReader, key: str, value: object) -> Mapping[str, bool]:
    table = reading.table(key, value)
    return MappingProxyType({n: reading.truth(f"{key}.{n}", entry) for n, entry in table.items()})


def _user(reading: _FileReader, key: str, value: object) -> User:
    return User(**reading.record(key, value, _USER))


def _network(reading: _FileReader, key: str, value: object) -> NetworkAccess:
    return NetworkAccess(**reading.record(key, value, _NETWORK))


_DISTRIBUTION: Mapping[str, Reader] = {
    "version": _FileReader.text,
    "modules": _FileReader.texts,
    "requires": _FileReader.texts,
    "extras": _FileReader.texts,
}
_GPU: Mapping[str, Reader] = {
    "model": _FileReader.text,
    "memory_bytes": _FileReader.size,
    "capability": _capability,
    "count": _FileReader.number,
}
_MOUNT: Mapping[str, Reader] = {
    "path": _FileReader.text,
    "writable": _FileReader.truth,
    "free_bytes": _FileReader.size,
    "quota_bytes": _FileReader.size,
    "case_sensitive": _FileReader.truth,
}
_USER: Mapping[str, Reader] = {
    "name": _FileReader.text,
    "uid": _FileReader.number,
    "gid": _FileReader.number,
    "groups": _FileReader.texts,
    "home": _FileReader.text,
}
_NETWORK: Mapping[str, Reader] = {"internet": _FileReader.truth, "hosts": _FileReader.texts}
_KEYS: Mapping[str, Reader] = {
    "name": _FileReader.text,
    "python": _python,
    "nodes": _FileReader.number,
    "gpus": _gpus,
    "driver": _FileReader.text,
    "cuda": _FileReader.text,
    "cuda_of_torch": _FileReader.text,
    "gpu_architectures": _FileReader.texts,
    "memory_bytes": _FileReader.size,
    "shared_memory_bytes": _FileReader.size,
    "cpus": _FileReader.number,
    "processes": _FileReader.number,
    "open_files": _FileReader.number,
    "time_limit_s": _FileReader.seconds,
    "working_folder": _FileReader.text,
    "listed": _FileReader.texts,
    "programs": _FileReader.names,
    "shared_libraries": _FileReader.names,
    "notes": _FileReader.texts,
    "user": _user,
    "network": _network,
    "environment": _strings,
    "files": _truths,
    "mounts": _mounts,
    "distributions": _distributions,
    "api": _api,
}


# -- Writing -----------------------------------------------------------------------------------


def write_target(target: Target) -> str:
    """The text of a target; reading it returns the same value (except for ``here``)."""
    plain = [f"format = {FORMAT}", f"name = {_value(target.name)}"]
    tables: list[str] = []
    for key in _KEYS:
        value = getattr(target, key)
        if key in _TABLES and value != ():
            tables += _TABLES[key](key, value)
        elif value is not None and (value != "" or key == "cuda_of_torch") and key not in _QUIET:
            plain.append(f"{key} = {_value(_SHOWN.get(key, _same)(value))}")
    names = sum(map(len, target.api.values()))
    if names > MOST_PLAIN_NAMES:
        plain.append(f"api_packed = '''\n{packed(target.api)}'''")
    elif target.api:
        tables += _api_lines(target.api)
    return "\n".join([*plain, *tables]) + "\n"


def _same(value: _T) -> _T:
    return value


def _value(value: object) -> str:
    """A value in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        entry = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
        return f"{{ {entry} }}" if entry else "{}"
    return repr(value)


def _quoted(text: str) -> str:
    # JSON strings are valid TOML, except for DEL and for surrogates, which no file can contain.
    clean = text.encode("utf-8", "replace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _table(key: str, value: Mapping[str, object] | None) -> list[str]:
    if value is None:
        return []
    return ["", f"[{key}]", *(f"{_key(name)} = {_value(entry)}" for name, entry in value.items())]


def _table_if_any(key: str, value: Mapping[str, object]) -> list[str]:
    return _table(key, value) if value else []


def _specified(value: object, names: Mapping[str, object]) -> dict[str, object]:
    """The fields of a record that have a value."""
    fields = {name: getattr(value, name) for name in names}
    return {
        name: entry for name, entry in fields.items() if entry is not None and entry not in ("", ())
    }


def _records(key: str, value: tuple[Mount, ...] | None) -> list[str]:
    lines: list[str] = []
    for each in value or ():
        entry = {"path": each.path, **_specified(each, _MOUNT)}
        lines += ["", f"[[{key}]]", *(f"{name} = {_value(v)}" for name, v in entry.items())]
    return lines


def _gpu_lines(key: str, value: tuple[GPU, ...] | None) -> list[str]:
    lines: list[str] = []
    for gpu, count in _runs(value or ()):
        lines += ["", f"[[{key}]]", f"model = {_value(gpu.model)}"]
        lines.append(f"memory_bytes = {gpu.memory_bytes}")
        if gpu.capability is not None:
            lines.append(f'capability = "{gpu.capability[0]}.{gpu.capability[1]}"')
        if count > 1:
            lines.append(f"count = {count}")
    return lines


def _runs(gpus: tuple[GPU, ...]) -> list[tuple[GPU, int]]:
    runs: list[tuple[GPU, int]] = []
    for gpu in gpus:
        if runs and runs[-1][0] == gpu and runs[-1][1] < 1024:
            runs[-1] = (gpu, runs[-1][1] + 1)
        else:
            runs.append((gpu, 1))
    return runs


def _distribution_lines(key: str, value: Mapping[str, Distribution] | None) -> list[str]:
    if value is None:
        return []
    lines = ["", f"[{key}]"]
    for name, each in value.items():
        fields: dict[str, object] = {"version": each.version}
        if each.modules is not None:
            fields["modules"] = each.modules
        fields |= _specified(each, {"requires": 0, "extras": 0})
        lines.append(f"{_key(name)} = {_value(fields)}")
    return lines


def _api_lines(api: Api) -> list[str]:
    lines: list[str] = []
    for module, names in api.items():
        lines += ["", f"[api.{_key(module)}]"]
        for name, entry in names.items():
            text = _value(f"({text_of(entry)})") if entry is not None else "false"
            lines.append(f"{_key(name)} = {text}")
    return lines


def _record(key: str, value: User | NetworkAccess | None) -> list[str]:
    if value is None:
        return []
    entry = _specified(value, _USER if isinstance(value, User) else _NETWORK)
    return _table(key, entry) if entry or isinstance(value, User) else []


_SHOWN: Mapping[str, Callable[[Any], object]] = {
    "python": lambda value: ".".join(map(str, value)),
    "programs": sorted,
    "shared_libraries": sorted,
}
_QUIET = {"name", "api"}
_TABLES: Mapping[str, Callable[[str, Any], list[str]]] = {
    "gpus": _gpu_lines,
    "user": _record,
    "network": _record,
    "environment": _table,
    "files": _table_if_any,
    "mounts": _records,
    "distributions": _distribution_lines,
}


def with_packages(target: Target, path: Path) -> Target:
    """The target with the distributions of a list of packages instead of its own.

    Raises:
        InputError: the file is not a list of packages.
    """
    found = read_packages(path)
    return replace(
        target,
        python=_python_of(found) or target.python,
        distributions=found,
        api={},
        cuda_of_torch=_cuda_of(found),
    )


def _python_of(distributions: Mapping[str, Distribution]) -> tuple[int, int, int] | None:
    """The version of Python that a conda or pixi list names; None if it names none."""
    listed = distributions.get("python")
    found = re.match(r"(\d{1,2})\.(\d{1,3})(?:\.(\d{1,3}))?", listed.version if listed else "")
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def _cuda_of(distributions: Mapping[str, Distribution]) -> str | None:
    """The CUDA version that the listed torch was built for; empty for a CPU build, None if the list does not show it.

    Wheels of PyTorch's own index end in ``+cu121`` or ``+cpu``. Those of PyPI depend on NVIDIA's packages of the same version,
    conda's on ``pytorch-cuda`` or ``cuda-version``.
    """
    torch = distributions.get("torch") or distributions.get("pytorch")
    if torch is None:
        return None
    built = re.search(r"\+(?:cpu|cu(\d+)(\d))", torch.version)
    if built:
        return f"{built[1]}.{built[2]}" if built[1] else ""
    listed = (distributions.get(name) for name in _CUDA_PACKAGES)
    found = (re.match(r"\d+\.\d+", package.version) for package in listed if package)
    return next((version[0] for version in found if version), None)


_CUDA_PACKAGES = (
    "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu11", "pytorch-cuda", "cuda-version",
)  # fmt: skip
