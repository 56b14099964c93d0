"""Finds a Python whose torch sees a GPU, adds what the parts import, and starts ``gpu.py`` with it.

    python bench/gpu/install.py .venv/gpu --out DIR [options of gpu.py]

If the torch of a Python on this machine sees a GPU, this Python is used unchanged: ``GPU_PYTHON``, or the first one in the
usual places. The packages that it lacks are installed only in the given directory. If no such Python exists, the directory becomes an environment with
torch for CUDA, about 3 GB. Without a GPU, nothing is installed unless ``--stand-in`` is given. The installation counts towards
``--seconds``. pip's own variables apply: with ``PIP_NO_INDEX=1 PIP_FIND_LINKS=DIR``, a machine without a network installs
wheels from a directory. ``--requirements`` prints the packages to download for it.

Only the standard library is imported, because nothing is installed yet.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
USUAL = (
    "/opt/conda/bin/python", "/opt/conda/envs/*/bin/python", "/opt/*/bin/python3", "/opt/*/.venv/bin/python3",
    "/usr/local/bin/python3", "~/*conda*/bin/python", "~/*conda*/envs/*/bin/python", "~/.venv/bin/python",
)  # fmt: skip
"""Where people and container images install Python, in addition to ``PATH``."""
PROBE = """
import json, sys
from importlib.metadata import version
from importlib.util import find_spec
found = {"fits": sys.version_info >= (3, 11), "torch": "", "gpus": 0}
if found["fits"] and find_spec("torch"):
    import torch
    # torch.__version__ may include the CUDA version, which pip does not know.
    found |= {"torch": version("torch"), "gpus": torch.cuda.device_count()}
print(json.dumps(found))
"""
MISSING = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
from pip._vendor.packaging.requirements import Requirement
def missing(wanted):
    try:
        return not wanted.specifier.contains(version(wanted.name), prereleases=True)
    except PackageNotFoundError:
        return True
wanted = [Requirement(text) for text in sys.argv[1:]]
print(json.dumps([str(each) for each in wanted if (not each.marker or each.marker.evaluate()) and missing(each)]))
"""


def main() -> None:
    """Install the packages, then replace this process with ``gpu.py``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="Directory for the installed packages.")
    parser.add_argument(
        "--requirements", action="store_true", help="Print the requirements and exit."
    )
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--stand-in", action="store_true")
    options, rest = parser.parse_known_args()
    end = time.monotonic() + options.seconds
    needed, useful = requirements()
    if options.requirements:
        print("\n".join((*needed, *useful)))
        return
    python, torch = suitable(options.stand_in, options.folder.resolve())
    packages: Path | None = options.folder.resolve() / "packages"
    if python:
        needed[0] = f"torch=={torch}"
    elif options.stand_in or driver_gpus():
        print(f"No Python with a suitable torch: one is installed in {options.folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", options.folder], check=True)
        python, packages = str(options.folder.resolve() / "bin" / "python"), None
    else:
        print("No GPU: NVIDIA's driver (libcuda.so.1) reports none, and no torch on this machine sees one. Nothing was "
              "installed or measured.\nTo run all parts on the CPU: make gpu GPU_OPTIONS=--stand-in")  # fmt: skip
        sys.exit(SKIPPED)
    path = [str(packages or ""), str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    install(python, [*needed, *useful], packages, end)
    if lacking := missing(python, [*needed, *useful]):
        print(f"Not installed: {', '.join(lacking)}. bench/gpu/install.py explains how to bring wheels.")  # fmt: skip
    if missing(python, needed):
        sys.exit("Nothing was measured: EpochZero requires some of these packages.")
    stand_in = ["--stand-in"] if options.stand_in else []
    left = end - time.monotonic()
    print(f"{options.seconds - left:.0f} s to prepare, {left:.0f} s left", flush=True)
    command = [python, str(REPOSITORY / "bench" / "gpu.py"), *rest, *stand_in]
    os.execv(python, [*command, f"--seconds={left:.0f}"])


def requirements() -> tuple[list[str], list[str]]:
    """Return the requirements of all parts, torch first, and those of only some parts."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    # The version for which the simulated GPU is verified.
    torch = next(each for each in extras["dev"] if each.startswith("torch="))
    watching = [each for each in extras["watch"] if not each.startswith(project["name"])]
    useful = [*extras["gpu"], *watching, "transformers", "accelerate", "peft", "bitsandbytes", "torch-preflight"]  # fmt: skip
    return [torch, *project["dependencies"], *extras["store"]], useful


def suitable(stand_in: bool, folder: Path) -> tuple[str, str]:
    """Return the first Python whose torch sees a GPU (for a stand-in, that has any torch) and its torch version; empty if none does."""
    for python in pythons(folder):
        try:
            done = subprocess.run(
                [python, "-c", PROBE], capture_output=True, text=True, check=True, timeout=120
            )
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        except (OSError, subprocess.SubprocessError, LookupError, ValueError):
            continue
        if found["torch"]:
            print(f"{python}: torch {found['torch']} sees GPUs: {found['gpus']}", flush=True)
        if found["gpus"] or (stand_in and found["torch"]):
            return python, found["torch"]
    return "", ""


def pythons(folder: Path) -> Iterator[str]:
    """Yield the Pythons that may have torch, the likeliest first."""
    if chosen := os.environ.get("GPU_PYTHON"):
        yield shutil.which(chosen) or chosen
        return
    folders = os.get_exec_path()
    environments = filter(None, map(os.environ.get, ("VIRTUAL_ENV", "CONDA_PREFIX")))
    found = [
        f"{folder}/bin/python",  # from an earlier call
        sys.executable,
        *(f"{environment}/bin/python" for environment in environments),
        *(f"{folder}/{name}" for folder in folders for name in ("python3", "python")),
        *(path for pattern in USUAL for path in sorted(glob.glob(os.path.expanduser(pattern)))),
    ]
    yield from dict.fromkeys(path for path in found if os.access(path, os.X_OK))


def driver_gpus() -> int:
    """Return the number of GPUs that NVIDIA's driver reports; 0 without a driver."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    return 0 if failed else count.value


def install(python: str, wanted: Sequence[str], packages: Path | None, end: float) -> None:
    """Install the packages that a Python lacks, in a separate directory if one is given."""
    lacking = missing(python, wanted)
    if lacking:
        print(f"Installing {', '.join(lacking)}", flush=True)
    if lacking and not pip(python, wanted, packages, end):
        # A package that has no wheel for this machine must not prevent the others.
        for each in lacking:
            pip(python, [wanted[0], each], packages, end)  # The version of torch does not change.


def missing(python: str, wanted: Sequence[str]) -> list[str]:
    """Return the requirements that a Python does not fulfill."""
    command = [python, "-c", MISSING, *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{python} has torch, but no pip: {done.stderr[-300:]}\nGPU_PYTHON=... names another Python.")  # fmt: skip
    lacking: list[str] = json.loads(done.stdout)
    return lacking


def pip(python: str, wanted: Sequence[str], packages: Path | None, end: float) -> bool:
    """Return whether pip installed everything in time. In a separate directory, pip would reinstall packages that the Python has."""
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries=1", "--no-compile"]  # fmt: skip
    try:
        if packages:
            report = [*command, "--dry-run", "--report=-", *wanted]
            done = subprocess.run(report, stdout=subprocess.PIPE, check=True, timeout=end - time.monotonic())  # fmt: skip
            each = [item["metadata"] for item in json.loads(done.stdout)["install"]]
            wanted = [f"{it['name']}=={it['version']}" for it in each]
            command += ["--no-deps", "--upgrade", f"--target={packages}"]
        if wanted:
            subprocess.run([*command, *wanted], check=True, timeout=end - time.monotonic())
    except (subprocess.SubprocessError, ValueError) as error:
        why = "no time is left" if isinstance(error, subprocess.TimeoutExpired) else "pip failed"
        print(f"Not installed, because {why}: {', '.join(wanted)}"[:300], flush=True)
        return False
    return True


if __name__ == "__main__":
    main()
