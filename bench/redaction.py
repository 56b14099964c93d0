"""What redaction hides, what it hides by mistake, and what it costs.

Made-up secrets of many kinds (`made_secrets`) are redacted; what of them is still shown is a leak,
and so is anything that detect-secrets still finds. The lines of real failures hold few secrets, so
that the lines which are changed can be read one by one (``--show``). The time is that of the lines
of those failures in random order, as a server receives them.
"""

from __future__ import annotations

import argparse
import logging
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache, partial

from common import SEED, data_file, rate, save
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import RegexBasedDetector
from made_secrets import made_secrets

from epochzero.redact import redact, redact_log

FILES = (
    "failures/labelled.jsonl.gz",
    "failures/notebooks.jsonl.gz",
    "failures/unlabelled.jsonl.gz",
)
DRAWS = 100
"""Of each kind of secret."""
PIECE = 9
"""So many characters of a secret in a row are a leak."""
STARTS = 11
_BARE = "import time, epochzero.errors; begin = time.process_time()"
_IMPORT = f"{_BARE}; import epochzero.redact; print(time.process_time() - begin)"
_FIRST = f"import epochzero.redact; {_BARE}; epochzero.redact.redact(\"KeyError: 'lr'\"); print(time.process_time() - begin)"


def main() -> None:
    """Measures, prints and saves the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the lines that are changed")
    options = parser.parse_args()
    logging.disable()
    data = [data_file(name) for name in FILES]
    texts = [record[name] for file in data for record in file.records
             for name in ("log", "text") if isinstance(record.get(name), str)]  # fmt: skip
    lines = sorted({line for text in texts for line in text.split("\n")})
    numbers = {
        "made": _made(),
        "real_lines": _real(lines, show=options.show),
        "speed": _speed(lines),
        "start_up_ms": {"import": _started(_IMPORT), "first_text": _started(_FIRST)},
    }
    for name, found in numbers.items():
        print(name, found)
    save("redaction", numbers, data=[file.described() for file in data])


def _made() -> Mapping[str, object]:
    """Leaks among the made-up secrets, and what another scanner finds before and after."""
    made = [one for seed in range(DRAWS) for one in made_secrets(seed)]
    leaks = [one for one in made if _leaks(one.secret, redact(one.line))]
    found = [one for one in made if _detected(one.line)]
    return {
        "kinds": len({one.kind for one in made}),
        "hidden": rate(len(made) - len(leaks), len(made)),
        "leaking_kinds": sorted({one.kind for one in leaks}),
        "detect_secrets_before": rate(len(found), len(made)),
        "detect_secrets_after": sum(_detected(redact(one.line)) for one in found),
    }


def _leaks(secret: str, shown: str) -> bool:
    starts = range(max(1, len(secret) - PIECE + 1))
    return any(secret[start : start + PIECE] in shown for start in starts)


@cache
def _detectors() -> tuple[RegexBasedDetector, ...]:
    """Those for a format; the others guess by entropy or names."""
    return tuple(
        kind()
        for kind in get_mapping_from_secret_type_to_class().values()
        if issubclass(kind, RegexBasedDetector) and kind.__name__ not in _NOISY
    )


_NOISY = frozenset(("IPPublicDetector", "BasicAuthDetector", "PrivateKeyDetector"))
"""These find addresses, or what stands around a secret and is left on purpose."""


def _detected(line: str) -> bool:
    return any(secret for detector in _detectors() for secret in detector.analyze_string(line))


def _real(lines: list[str], *, show: bool) -> Mapping[str, object]:
    """How many lines of real failures are changed by each."""
    changed = [line for line in lines if redact(line) != line]
    if show:
        print(*map(redact, changed), sep="\n")
    return {
        "lines": len(lines),
        "changed": len(changed),
        "detect_secrets": sum(map(_detected, lines)),
    }


def _speed(lines: list[str]) -> Mapping[str, float]:
    """Megabytes a second of processor time."""
    mixed = lines[:]
    random.Random(SEED).shuffle(mixed)
    progress = [f"epoch {n // 100} step {n} loss {1 / (n + 1):.3f} lr 1e-4" for n in range(200_000)]
    redact_log(b"password=hunter2x\n")  # The patterns are compiled once in a process.
    return {
        f"{name}_mb_s": round(len(data) / 1e6 / _taken(partial(redact_log, data)), 1)
        for name, data in (
            ("failures", "\n".join(mixed).encode("utf-8", "replace")),
            ("progress", "\n".join(progress).encode()),
        )
    }


def _taken(run: partial[bytes]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def _started(program: str) -> float:
    """Milliseconds of processor time in a fresh process; the median."""
    command = (sys.executable, "-c", program)
    taken = sorted(
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(STARTS)
    )
    return round(1000 * taken[STARTS // 2], 2)


if __name__ == "__main__":
    main()
