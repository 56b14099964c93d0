"""Makes the histories of libraries' APIs that ship: what each version has, read from the packages.

    python bench/api_history.py FOLDER                 all libraries, wheels and sources kept in FOLDER
    python bench/api_history.py FOLDER torch numpy     some of them
    python bench/api_history.py FOLDER --verify        compare with what is bound here at run time

Of each minor release since `SINCE` the last one is downloaded with pip, as a wheel for any system
(those for macOS hold no CUDA libraries, and the same Python sources), and read without importing it.
`--verify` imports the libraries that this Python has, in the version that it has, and names what a
complete module binds and the history does not tell: each would be a false alarm.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_here
from pathlib import Path

from packaging.version import Version

from epochzero.check.target import history
from epochzero.check.target.api import read_api
from epochzero.check.target.model import CallSignature

SINCE = {
    "accelerate": "0.12", "albumentations": "1.0", "datasets": "2.0", "diffusers": "0.10",
    "einops": "0.3", "evaluate": "0.1", "huggingface-hub": "0.10", "hydra-core": "1.0",
    "keras": "3.0", "lightning": "2.0", "matplotlib": "3.3", "networkx": "2.4", "numpy": "1.19",
    "omegaconf": "2.0", "pandas": "1.1", "peft": "0.3", "pillow": "7.0",
    "pytorch-lightning": "1.5", "safetensors": "0.2", "scikit-learn": "0.23", "scipy": "1.5",
    "timm": "0.5", "tokenizers": "0.12", "torch": "1.13", "torchaudio": "2.0",
    "torchmetrics": "0.7", "torchvision": "0.15", "tqdm": "4.50", "transformers": "4.20",
    "trl": "0.4",
}  # fmt: skip
LEFT_OUT = {"transformers": ("transformers.models",), "diffusers": ("diffusers.pipelines",)}
"""Modules of hundreds of models with thousands of classes each, of which few names are ever used."""

OPEN = {
    "lightning.fabric.plugins",
    "lightning.pytorch.plugins",
    "lightning.pytorch.plugins.io",
    "lightning.pytorch.plugins.precision",
    "networkx.utils.configs",
    "pytorch_lightning.plugins",
    "pytorch_lightning.plugins.io",
    "pytorch_lightning.plugins.precision",
    "scipy.sparse.linalg",
    "scipy.stats",
    "scipy.stats.distributions",
    "torch.onnx.symbolic_opset9",
}
"""Modules that make names at run time, as `--verify` found: nothing is said to be missing in them."""

MODULES = {"hydra-core": "hydra", "pillow": "PIL", "scikit-learn": "sklearn"}
"""Top-level modules whose name is not the distribution's."""

FOLDER = Path(history.__file__).parent / "api_history"
ANY_MAC = ("macosx_11_0_arm64", "macosx_14_0_arm64", "macosx_10_9_x86_64")
PYTHONS = ("3.11", "3.13", "3.9", "3.8")
Names = dict[str, CallSignature | None]


def main() -> None:
    """Downloads, reads, writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("libraries", nargs="*", help="distributions; all when none is named")
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    for library in options.libraries or SINCE:
        if options.verify:
            verify(library)
            continue
        sources = [
            (v, source) for v in versions(library) if (source := fetch(options.folder, library, v))
        ]
        apis = [read(library, source) for _, source in sources]
        data = history.written([str(v) for v, _ in sources], apis)
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{library}.zst").write_bytes(data)
        print(
            f"{library}: {len(apis)} versions, {sum(map(len, apis[-1].values()))} names, {len(data)} bytes"
        )


# -- Packages ----------------------------------------------------------------------------------


def versions(library: str) -> list[Version]:
    """The last release of each minor one since the first that counts, oldest first."""
    asked = [sys.executable, "-m", "pip", "index", "versions", library]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    line = next(line for line in said.splitlines() if line.startswith("Available versions:"))
    known = [Version(text) for text in re.findall(r"\d[\w.+]*", line)]
    kept = [
        v for v in known if v >= Version(SINCE[library]) and not v.is_prerelease and not v.local
    ]
    last = {v.release[:2]: v for v in sorted(kept)}
    return list(last.values())


def fetch(folder: Path, library: str, version: Version) -> Path | None:
    """The sources of a version; None when there is no wheel of it."""
    out = folder / library / str(version)
    if not out.is_dir():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            wheel = download(Path(scratch), library, version)
            if wheel is None:
                print(f"{library} {version}: no wheel", file=sys.stderr)
                return None
            unpack(wheel, out)
    return out


def download(scratch: Path, library: str, version: Version) -> Path | None:
    """The wheel of a version; of torch one without CUDA."""
    platforms = ANY_MAC if library == "torch" else ("", *ANY_MAC)
    for platform in platforms:
        for python in PYTHONS:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += [
                "--only-binary",
                ":all:",
                "--python-version",
                python,
                "--dest",
                str(scratch),
            ]
            command += ["--platform", platform] if platform else []
            subprocess.run([*command, f"{library}=={version}"], capture_output=True, check=False)
            for wheel in scratch.glob("*.whl"):
                return wheel
    return None


def unpack(wheel: Path, out: Path) -> None:
    """The sources and stubs; of a compiled module an empty file that says that it is there."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            place = out / name
            if name.endswith((".py", ".pyi")):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(archive.read(name))
            elif name.endswith(".so"):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.with_name(place.name.partition(".")[0] + ".so").touch()


# -- Reading -----------------------------------------------------------------------------------


def read(library: str, source: Path) -> dict[str, Names]:
    """The API of the sources, without the modules that are left out and the members of their classes."""
    api, _ = read_api([MODULES.get(library, library.replace("-", "_"))], [str(source)])
    outside = LEFT_OUT.get(library, ())
    left_out = {name for name in api for one in outside if f"{name}.".startswith(f"{one}.")}
    classes = {name.partition(".")[0] for module in left_out for name in api[module] if "." in name}
    read = {
        module: {
            name: signature
            for name, signature in names.items()
            if "." not in name or name.partition(".")[0] not in classes
        }
        for module, names in api.items()
        if module not in left_out
    }
    for module in OPEN.intersection(read):
        read[module]["*"] = None
    return read


# -- Checking ----------------------------------------------------------------------------------


def verify(library: str) -> None:
    """Prints what complete modules bind at run time that the history does not tell."""
    try:
        api = history.api_of(library, version_here(library))
    except PackageNotFoundError:
        api = None
    if api is None:
        print(f"{library}: not here, or in a version that the history has not")
        return
    lacking = dict(_lacking(api))
    print(
        f"{library} {version_here(library)}: {len(api)} modules, {sum(map(len, lacking.values()))} names lacking"
    )
    for module, names in lacking.items():
        print(f"    {module}: {', '.join(names)}")


def _lacking(api: history.Api) -> Iterator[tuple[str, list[str]]]:
    for module, names in api.items():
        if "*" in names or "__getattr__" in names or module.count(".") > 2:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                bound = vars(importlib.import_module(module))
        except Exception:
            continue
        lacking = [
            name
            for name, value in bound.items()
            if not name.startswith("_") and not inspect.ismodule(value) and name not in names
        ]
        if lacking:
            yield module, lacking


if __name__ == "__main__":
    main()
