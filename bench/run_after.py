"""Seconds from the end of a failing job to its diagnosis on the screen, for a log of 100 MB.

The job prints that much, tells when it is done, and fails with a traceback: once at 50 MB a second, and
once as fast as it can, when there is hardly time to prepare anything.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import save

REPEATS = 5
WANTED_S = 1.0
# Its arguments: megabytes, seconds between them, the file for the time of its end.
JOB = """
import sys, time
line = "2026-01-01 12:00:00 INFO step %7d loss 0.12345 lr 0.00100 throughput 1234.5 samples/s\\n"
began, step = time.monotonic(), 0
for megabyte in range(int(sys.argv[1])):
    sys.stdout.write("".join(line % (step + n) for n in range(1_000_000 // 86 + 1)))
    sys.stdout.flush()
    step += 1_000_000 // 86 + 1
    time.sleep(max(0.0, began + megabyte * float(sys.argv[2]) - time.monotonic()))
open(sys.argv[3], "w").write(repr(time.time()))
raise KeyError("lr")
"""


def main() -> None:
    """Measures, prints, and keeps the result."""
    numbers: dict[str, object] = {"wanted_s": WANTED_S}
    for name, pause in (("at_50_mb_s", 0.02), ("as_fast_as_it_can", 0.0)):
        taken = [_seconds(pause) for _ in range(REPEATS)]
        numbers[name] = {
            "median_s": round(statistics.median(taken), 3),
            "all_s": [round(seconds, 3) for seconds in taken],
        }
    print(numbers)
    save("run_after", numbers)


def _seconds(pause: float) -> float:
    """Of one run, until the line that begins with FAILED."""
    with tempfile.TemporaryDirectory() as name:
        end = Path(name) / "end"
        command = (sys.executable, "-m", "epochzero", "run", "--")
        job = (sys.executable, "-c", JOB, "100", str(pause), str(end))
        with subprocess.Popen(
            (*command, *job),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=name,
            env={**os.environ, "EPOCHZERO_HOME": str(Path(name) / "home")},
        ) as process:
            assert process.stderr is not None
            told = next(time.time() for line in process.stderr if line.startswith(b"FAILED"))
            process.stderr.read()
        return told - float(end.read_text())


if __name__ == "__main__":
    main()
