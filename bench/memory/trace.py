"""Runs a script on a pretended GPU, and writes what it allocates: ``trace.py SPEC SCRIPT ARGS``.

SPEC is a JSON object with ``gpu`` (``model``, ``memory_bytes``, ``capability``), ``processes`` and
``trace``, the file to write. Prints the peak memory of the process in MiB.
"""

import json
import resource
import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run it."""
    from epochzero.check.dryrun.child import fake, layers

    spec = json.loads(sys.argv[1])
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    world = {"size": spec["processes"], "rank": 0, "local_size": spec["processes"]}
    with fake.enter([spec["gpu"]], world) as faked, layers.watched():
        runpy.run_path(sys.argv[0], run_name="__main__")
        faked.trace.write(spec["trace"])
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(used)


if __name__ == "__main__":
    main()
