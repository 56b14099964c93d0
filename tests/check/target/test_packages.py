"""Lists of packages of every common kind, and what is installed in a folder."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero.check import check
from epochzero.check.target import read_target, with_packages
from epochzero.check.target.model import Target
from epochzero.check.target.packages import installed, likely_modules, read_packages, well_known
from epochzero.errors import InputError


def versions(folder: Path, name: str, text: str) -> dict[str, str]:
    path = folder / name
    path.write_text(text)
    return {key: each.version for key, each in read_packages(path).items()}


def test_pip_freeze_and_requirements(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("scipy==1.13.0\n-r requirements.txt\n")
    text = (
        "# comment\nTorch==2.4.0+cu121\nnumpy>=1.26,<3  # why\nPillow==10.0.0 ; python_version > '3'\n"
        "transformers[torch]==4.44.0 \\\n    --hash=sha256:abc\n-r base.txt\n--index-url x\n-c other.txt\n"
        "mine @ file:///src/mine-1.2-py3-none-any.whl\n-e git+ssh://host/repo@abc#egg=Tool_Box\n./local\n"
        "huggingface_hub==0.24.*\n"
    )
    assert versions(tmp_path, "requirements.txt", text) == {
        "torch": "2.4.0+cu121", "numpy": "", "pillow": "10.0.0", "transformers": "4.44.0",
        "scipy": "1.13.0", "mine": "1.2", "tool-box": "", "huggingface-hub": "", "local": "",
    }  # fmt: skip
    (tmp_path / "job").mkdir()
    unnamed = "-e .[dev]\ngit+ssh://git@github.com/openai/CLIP.git@main\nhttps://host/a_b/ # why\n"
    assert versions(tmp_path / "job", "r.txt", unnamed) == {"job": "", "clip": "", "a-b": ""}


def test_locks(tmp_path: Path) -> None:
    package = '[[package]]\nname = "Torch"\nversion = "2.4.0"\n[[package]]\nname = "local"\n'
    for name in ("uv.lock", "poetry.lock"):
        assert versions(tmp_path, name, package) == {"torch": "2.4.0", "local": ""}
    lock = package.replace("package", "packages")
    assert versions(tmp_path, "pylock.toml", lock) == {"torch": "2.4.0", "local": ""}
    pipfile = {"_meta": {}, "default": {"torch": {"version": "==2.4.0"}}, "develop": {"x": {}}}
    assert versions(tmp_path, "Pipfile.lock", json.dumps(pipfile)) == {"torch": "2.4.0", "x": ""}


def test_conda(tmp_path: Path) -> None:
    environment = (
        "name: job\nchannels:\n  - conda-forge\ndependencies:\n  - python=3.11\n  - pytorch=2.4.0=py3.11_cuda\n"
        "  - conda-forge::numpy>=1.26\n  # comment\n  - pip\n  - pip:\n    - einops==0.8.0\n    - timm\n  - scipy\nprefix: /x\n"
    )
    assert versions(tmp_path, "environment.yml", environment) == {
        "python": "3.11", "pytorch": "2.4.0", "numpy": "", "pip": "", "einops": "0.8.0", "timm": "",
        "scipy": "",
    }  # fmt: skip
    (tmp_path / "more.txt").write_text("lightning==2.4.0\n")
    included = "dependencies:\n  - python=3.10\n  - pip:\n      - -r more.txt  # the rest\n"
    assert versions(tmp_path, "environment.yml", included) == {
        "python": "3.10",
        "lightning": "2.4.0",
    }
    exported = "# This file may be used to create an environment using:\n# platform: linux-64\n_libgcc_mutex=0.1=main\nnumpy=1.26.4=py311_0\nopencv=4.9=x\n"
    assert versions(tmp_path, "list.txt", exported) == {"numpy": "1.26.4", "opencv": "4.9"}
    explicit = "@EXPLICIT\nhttps://host/linux-64/numpy-1.26.4-py311_0.conda#abc\nhttps://host/noarch/ruamel.yaml-0.18-p_1.tar.bz2\n"
    assert versions(tmp_path, "explicit.txt", explicit) == {
        "numpy": "1.26.4",
        "ruamel-yaml": "0.18",
    }


def test_a_module_of_a_repository_without_a_name_is_not_certainly_missing(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "torch==2.4.0\ngit+https://github.com/openai/CLIP.git\ngit+https://github.com/me/tools\n"
    )
    (tmp_path / "target.toml").write_text('format = 1\npackages = "requirements.txt"\n')
    (tmp_path / "train.py").write_text("import clip\nimport helpers_of_tools\n")
    checked = check(("python", "train.py"), read_target(tmp_path / "target.toml"), folder=tmp_path)
    (finding,) = checked.findings
    assert (finding.severity, finding.place.line) == ("warning", 2)


@pytest.mark.parametrize(
    ("listed", "cuda"),
    [
        ("torch==2.4.0+cu121", "12.1"),
        ("torch==2.4.0+cpu", ""),
        ("torch==2.5.1\nnvidia-cuda-runtime-cu12==12.4.127", "12.4"),
        ("torch==2.9.0\nnvidia-cuda-runtime==13.0.48", "13.0"),
        ("torch==2.5.1", None),
        ("nvidia-cuda-runtime-cu12==12.4.127", None),
    ],
)
def test_the_cuda_version_of_torch_follows_from_the_list(
    tmp_path: Path, listed: str, cuda: str | None
) -> None:
    (tmp_path / "r.txt").write_text(listed)
    (tmp_path / "target.toml").write_text('format = 1\npackages = "r.txt"\n')
    assert read_target(tmp_path / "target.toml").cuda_of_torch == cuda
    assert with_packages(Target("captured"), tmp_path / "r.txt").cuda_of_torch == cuda


def test_modules_that_are_named_otherwise(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("PyYAML==6\nopencv_python==4\nsome-thing==1\n")
    found = read_packages(tmp_path / "r.txt")
    assert found["pyyaml"].modules == ("yaml",)
    assert found["opencv-python"].modules == ("cv2",)
    assert found["some-thing"].modules is None
    assert likely_modules(found["some-thing"]) == ("some_thing",)
    assert all(modules for modules in well_known().values())


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.lock", "x = 1"), ("a.lock", "x ="), ("Pipfile.lock", "{"), ("e.yml", "name: x\n"),
     ("r.txt", "what is this\n"), ("r.txt", "\0\0"), ("Pipfile.lock", '{"default": [1]}')],
)  # fmt: skip
def test_what_is_no_list_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        read_packages(tmp_path / name)


@given(
    text=st.text(max_size=80), name=st.sampled_from(["r.txt", "a.lock", "e.yml", "Pipfile.lock"])
)
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, name: str
) -> None:
    path = tmp_path_factory.mktemp("lists") / name
    path.write_text(text, encoding="utf-8", errors="replace")
    with suppress(InputError):
        read_packages(path)


def make(folder: Path, name: str, files: dict[str, str], metadata: str = "") -> None:
    info = folder / f"{name}-1.0.dist-info"
    files = {
        **files,
        f"{info.name}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}\n",
    }
    record = "".join(f"{path},,\n" for path in files)
    for path, text in {**files, f"{info.name}/RECORD": record}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def test_what_is_installed(tmp_path: Path) -> None:
    make(tmp_path, "Data_Kit", {"datakit/__init__.py": "", "single.py": "", "_fast.abi3.so": "",
                                "space/inner/mod.py": "", "notes/readme.txt": ""},
         "Requires-Dist: numpy>=1.2\nRequires-Dist: x; extra == 'more'\nProvides-Extra: more")  # fmt: skip
    found = installed([str(tmp_path)])["data-kit"]
    assert found.version == "1.0"
    assert found.modules == ("_fast", "datakit", "single", "space")
    assert found.requires == ("numpy>=1.2", "x; extra == 'more'")
    assert found.extras == ("more",)


def test_modules_without_a_distribution_are_installed_too(tmp_path: Path) -> None:
    """Copied there by hand, or in a directory that a ``.pth`` file adds."""
    site, added = tmp_path / "site-packages", tmp_path / "added"
    make(site, "Data_Kit", {"datakit/__init__.py": ""})
    for path in (site / "By_Hand.py", site / "folder/__init__.py", site / "fast.abi3.so",
                 site / "empty/notes.txt", site / "no-module.py", added / "third/__init__.py"):  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (site / "more.pth").write_text(f"{added}\n")
    (tmp_path / "job.py").touch()
    found = installed([str(site), str(tmp_path)])
    assert {name: each.modules for name, each in found.items()} == {
        "data-kit": ("datakit",), "by-hand": ("By_Hand",), "folder": ("folder",), "fast": ("fast",),
        "third": ("third",),
    }  # fmt: skip
    assert found["by-hand"].version == ""


def test_editable_installations(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "mine").mkdir(parents=True)
    (source / "mine" / "__init__.py").touch()
    site = tmp_path / "site"
    make(site, "mine", {"_mine.pth": f"{source}\n"})
    make(
        site,
        "other",
        {"__editable___other_finder.py": "MAPPING: dict[str, str] = {'other': '/x/other'}\n"},
    )
    found = installed([str(site)])
    assert found["mine"].modules == ("mine",)
    assert found["other"].modules == ("other",)


def test_damaged_metadata_costs_only_its_distribution(tmp_path: Path) -> None:
    make(tmp_path, "good", {"good.py": ""})
    (tmp_path / "bad-1.0.dist-info").mkdir()
    (tmp_path / "worse-1.0.dist-info").mkdir()
    (tmp_path / "worse-1.0.dist-info" / "METADATA").write_bytes(b"\xff\x00")
    assert "good" in installed([str(tmp_path)])


def test_pixi_lists_packages_of_conda_and_of_pypi(tmp_path: Path) -> None:
    (tmp_path / "pixi.lock").write_text(
        "version: 6\nenvironments:\n  default:\n    packages:\n      linux-64:\n"
        "      - conda: https://conda.anaconda.org/conda-forge/linux-64/python-3.12.3-hab00c5b_0_cpython.conda\n"
        "packages:\n"
        "- conda: https://conda.anaconda.org/conda-forge/linux-64/_libgcc_mutex-0.1-conda_forge.tar.bz2\n"
        "  sha256: fe51\n"
        "- conda: https://conda.anaconda.org/conda-forge/linux-64/python-3.12.3-hab00c5b_0_cpython.conda\n"
        "  build_number: 0\n"
        "- pypi: https://files.pythonhosted.org/packages/aa/torch-2.4.0-cp312-cp312-manylinux1_x86_64.whl\n"
        "  name: torch\n  version: 2.4.0\n  requires_dist:\n  - filelock\n"
        "- pypi: ./\n  name: my-job\n"
    )
    found = read_packages(tmp_path / "pixi.lock")
    assert {name: one.version for name, one in found.items()} == {
        "python": "3.12.3",
        "torch": "2.4.0",
        "my-job": "",
    }
    (tmp_path / "target.toml").write_text('format = 1\npackages = "pixi.lock"\n')
    assert read_target(tmp_path / "target.toml").python == (3, 12, 3)


@pytest.mark.parametrize(
    ("listed", "severity"),
    [("torch==2.4.0\ntransformers\n", "warning"), ("torch==2.4.0\nfilelock==3.15.4\n", "error")],
    ids=["requirements", "freeze"],
)
def test_a_module_may_be_installed_with_a_package_whose_version_is_open(
    tmp_path: Path, listed: str, severity: str
) -> None:
    (tmp_path / "requirements.txt").write_text(listed)
    (tmp_path / "target.toml").write_text('format = 1\npackages = "requirements.txt"\n')
    (tmp_path / "train.py").write_text("import yaml\n")
    target = read_target(tmp_path / "target.toml")
    (found,) = check(["python", "train.py"], target, folder=tmp_path).findings
    assert (found.rule, found.severity) == ("module-missing", severity)
