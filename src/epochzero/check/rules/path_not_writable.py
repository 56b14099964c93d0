"""The program writes to a path that the user cannot write to."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _describe(problem: Problem, world: World) -> Texts:
    shown = world.platform.shown(problem.path)
    return (
        f"{problem.access.function} writes {shown}, but {problem.detail}.",
        f"PermissionError: '{shown}' (or OSError: Read-only file system)",
        "Write to a directory that you own and that is writable on the target. Take its path "
        "from an argument.",
    )


_READ_ONLY = '[[mounts]]\npath = "/data"\nwritable = false\n\n[[mounts]]\npath = "/scratch"\n'
_USER = '[user]\nname = "mara"\nuid = 1000\nhome = "/home/mara"\n'
_SAVE = "import torch\nmodel = torch.nn.Linear(2, 2)\ntorch.save(model, '/data/model.pt')\n"
_LISTED = f'listed = ["/data"]\n[files]\n"/data" = true\n"/data/a.csv" = true\n\n{_READ_ONLY}'
_CACHE = """\
import sys
from pathlib import Path


def table(folder):
    target = folder / f"{sys.byteorder}{sys.maxunicode}.npy"
    if %s:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    return target


table(Path("/data/cache"))
"""
_ROOT = '[[mounts]]\npath = "/"\nwritable = false\n'
_POD = (
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    - image: gnn\n      workingDir: /job\n"
    "      command: [python, train.py]\n      volumeMounts: [{name: work, mountPath: /data}]\n"
    "  volumes: [{name: work, emptyDir: {}}]\n"
)

RULE = Rule(
    title="The program writes to a path that the user cannot write to",
    category="permission_denied",
    why="Data sets are mounted read-only, and cluster users are not administrators. Checkpoints "
    "and results are written late, so the failure comes late.",
    fix="Write to a directory that you own. Take its path from an argument.",
    source="Zhang et al., ICSE 2020, Table 1: Permission Denied; section 5.1: validate permissions "
    "early",
    check=path_check("path-not-writable", _describe),
    catches=(
        Case({"train.py": _SAVE}, target=_READ_ONLY, line=3),
        Case(
            {"train.py": _SAVE},
            command=("docker", "run", "-v", "/raid:/data:ro", "image", "python", "train.py"),
            line=3,
        ),
        Case(
            {"train.py": _SAVE, "pod.yaml": _POD.replace("/data}", "/data, readOnly: true}")},
            command=("kubectl", "create", "-f", "pod.yaml"),
            target=_ROOT,
            line=3,
        ),
        Case(
            {"train.py": "import os\nos.makedirs('/root/.cache/x', exist_ok=True)\n"},
            command=("docker", "run", "--user", "1000:1000", "image", "python", "train.py"),
            line=2,
        ),
        Case(
            {"train.py": "import os\nos.makedirs('/data/cache', exist_ok=True)\n"},
            target=_READ_ONLY,
            line=2,
        ),
        Case({"train.py": "open('/results.txt', 'w').write('x')\n"}, target=_USER, line=1),
        Case({"train.py": "open('/usr/share/notes.txt', 'a').write('x')\n"}, target=_USER, line=1),
        Case(
            {
                "train.py": "import pandas as pd\nframe = pd.DataFrame()\nfor i in range(3):\n"
                "    frame.to_csv(f'/data/out/{i}.csv')\n"
            },
            target=_READ_ONLY,
            line=4,
        ),
        Case({"train.py": _CACHE % "target.exists()"}, target=_LISTED, line=9),
    ),
    leaves=(
        Case({"train.py": _SAVE.replace("/data/", "/scratch/")}, target=_READ_ONLY),
        Case({"train.py": "import torch\ntorch.load('/data/model.pt')\n"}, target=_READ_ONLY),
        Case({"train.py": "open('/results.txt', 'w').write('x')\n"}),
        Case(
            {"train.py": _SAVE, "pod.yaml": _POD},
            command=("kubectl", "create", "-f", "pod.yaml"),
            target=_ROOT,
        ),
        Case(
            {"train.py": _SAVE},
            command=("docker", "run", "--tmpfs", "/data:size=1g", "image", "python", "train.py"),
            target=_ROOT,
        ),
        Case({"train.py": "open('/tmp/results.txt', 'w').write('x')\n"}, target=_USER),
        Case(
            {"train.py": "open('/results.txt', 'w').write('x')\n"},
            target='[user]\nname = "root"\nuid = 0\nhome = "/root"\n',
        ),
        Case(
            {"train.py": "try:\n    open('/data/lock', 'w').close()\nexcept OSError:\n    pass\n"},
            target=_READ_ONLY,
        ),
    ),
)
