"""Container images as targets: both kinds of archive, layers with whiteouts, links, and damaged archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from epochzero import zstd
from epochzero.check import check
from epochzero.check.target import read_image, read_target
from epochzero.cli.target import command
from epochzero.errors import InputError

SITE = "usr/local/lib/python3.11/site-packages"
BASE = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\njob:x:1000:100:Job:/home/job:/bin/sh\n",
    "usr/local/bin/python": "-> python3.11",
    "usr/local/bin/python3.11": "\x7fELF",
    "usr/local/bin/torchrun": "#!/usr/local/bin/python",
    "usr/lib/x86_64-linux-gnu/libGL.so.1": "",
    "etc/ld.so.conf.d/x86_64.conf": "/usr/lib/x86_64-linux-gnu\n",
    "lib": "-> usr/lib",
    f"{SITE}/torch/__init__.py": "def ones(size): ...\n",
    f"{SITE}/torch/version.py": "__version__ = '2.4.0+cu124'\ncuda = '12.4'\n",
    f"{SITE}/torch-2.4.0.dist-info/METADATA": "Name: torch\nVersion: 2.4.0\n",
    f"{SITE}/torch-2.4.0.dist-info/RECORD": "torch/__init__.py,,\n",
    f"{SITE}/einops-0.7.dist-info/METADATA": "Name: einops\nVersion: 0.7\n",
}
TOP = {
    f"{SITE}/.wh.einops-0.7.dist-info": "",
    f"{SITE}/einops-0.8.dist-info/METADATA": "Name: einops\nVersion: 0.8\n",
    f"{SITE}/einops-0.8.dist-info/RECORD": "einops/__init__.py,,\n",
    "app/train.py": "import torch, einops, yaml\nopen('data.csv')\nopen('config.json')\n",
    "app/config.json": "{}",
}
CONFIG = {
    "config": {
        "Env": [
            "PATH=/usr/local/bin:/usr/bin",
            "PYTHON_VERSION=3.11.9",
            "HF_TOKEN=hf_abcdefghijkl",
        ],
        "WorkingDir": "/app",
        "User": "job",
        "Entrypoint": ["python"],
        "Cmd": ["train.py"],
    }
}


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """A tar of files; ``-> x`` is a link."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            data = content.encode() if isinstance(content, str) else content
            if data.startswith(b"-> "):
                member.type, member.linkname = tarfile.SYMTYPE, data[3:].decode()
                tar.addfile(member)
            else:
                member.size, member.mode = len(data), 0o755
                tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def docker(layers: list[bytes]) -> bytes:
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": "config.json", "RepoTags": ["job:1"], "Layers": names}]
    return packed(
        {
            **dict(zip(names, layers, strict=True)),
            "config.json": json.dumps(CONFIG),
            "manifest.json": json.dumps(manifest),
        }
    )


def oci(layers: list[bytes]) -> bytes:
    files: dict[str, str | bytes] = {}

    def blob(data: bytes) -> dict[str, str]:
        digest = hashlib.sha256(data).hexdigest()
        files[f"blobs/sha256/{digest}"] = data
        return {"digest": f"sha256:{digest}"}

    manifest = {"config": blob(json.dumps(CONFIG).encode()), "layers": list(map(blob, layers))}
    described = blob(json.dumps(manifest).encode())
    other = {"digest": "sha256:0", "platform": {"architecture": "arm64"}}
    of_platforms = blob(json.dumps({"manifests": [other, described]}).encode())
    return packed({"index.json": json.dumps({"manifests": [of_platforms]}), **files})


@pytest.mark.parametrize(
    "archive",
    [
        docker([packed(BASE), packed(TOP)]),
        oci([gzip.compress(packed(BASE)), zstd.compress(packed(TOP))]),
    ],
    ids=["docker", "oci"],
)
def test_an_image_is_read_without_running_it(tmp_path: Path, archive: bytes) -> None:
    (tmp_path / "job.tar").write_bytes(archive)
    target = read_image(tmp_path / "job.tar", name="job", libraries=["torch"])
    assert target.python == (3, 11, 9)
    found = {name: one.version for name, one in (target.distributions or {}).items()}
    assert found == {"torch": "2.4.0", "einops": "0.8"}
    assert target.cuda_of_torch == "12.4"
    assert "ones" in target.api["torch"]
    assert target.programs >= {"python", "torchrun"}
    assert "libGL.so.1" in (target.shared_libraries or ())
    assert target.environment is not None
    assert target.environment["HF_TOKEN"] == ""
    assert target.user is not None
    assert (target.user.name, target.user.uid, target.user.home) == ("job", 1000, "/home/job")
    assert target.working_folder == "/app"
    assert target.files["/app/config.json"]
    assert "python train.py" in target.notes[0]
    assert target.gpus is None
    assert target.memory_bytes is None


def test_a_job_is_checked_against_an_image(tmp_path: Path) -> None:
    (tmp_path / "job.tar").write_bytes(docker([packed(BASE), packed(TOP)]))
    written = CliRunner().invoke(
        command, ["capture", "--image", str(tmp_path / "job.tar"), "-o", str(tmp_path / "job.toml")]
    )
    assert written.exit_code == 0, written.output
    (tmp_path / "train.py").write_text(str(TOP["app/train.py"]).partition("\n")[0])
    found = check(["python", "train.py"], read_target(tmp_path / "job.toml"), folder=tmp_path)
    assert [one.consequence for one in found.findings] == [
        "ModuleNotFoundError: No module named 'yaml'"
    ]


def test_names_outside_and_links_in_circles_are_harmless(tmp_path: Path) -> None:
    layer = {
        **BASE,
        "../../evil": "x",
        "usr/local/bin/python": "-> python3.11",
        "usr/local/bin/loop": "-> loop",
        f"{SITE}/../../../../../../../tmp/x.dist-info/METADATA": "Name: x\n",
        "etc/ld.so.conf.d/a.conf": "-> /etc/ld.so.conf.d/b.conf",
        "etc/ld.so.conf.d/b.conf": "-> /etc/ld.so.conf.d/a.conf",
    }
    (tmp_path / "job.tar").write_bytes(docker([packed(layer)]))
    target = read_image(tmp_path / "job.tar", name="job", libraries=["torch"])
    assert target.python == (3, 11, 9)
    assert not (tmp_path.parent / "evil").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not a tar", "not a readable image archive"),
        (packed({"a.txt": "a"}), "neither manifest.json"),
        (packed({"manifest.json": "[]"}), "not a container image"),
        (docker([b"damaged" * 200]), "not a readable image archive"),
        (docker([gzip.compress(packed(BASE))[:300]]), "not a readable image archive"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "job.tar").write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_image(tmp_path / "job.tar", name="job")


def test_image_excludes_options_of_this_machine(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["capture", "--image", str(tmp_path / "x.tar"), "--probe"])
    assert result.exit_code == 2
    assert "cannot be combined" in result.output
