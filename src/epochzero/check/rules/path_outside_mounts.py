"""An absolute path is outside every file system of the target."""

from __future__ import annotations

from epochzero.check.paths.report import Texts, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _describe(problem: Problem, world: World) -> Texts:
    job, target = world.platform.job, world.platform.target
    if target.here and job.container:
        where = "no volume of the container, although it exists on this machine"
    else:
        mounts = ", ".join(sorted(one.path for one in target.mounts or ()))
        where = f"no mount of {target.name or 'the target'} ({mounts})"
    return (
        f"{problem.access.function} uses {problem.path}, which is in {where}.",
        f"FileNotFoundError: No such file or directory: '{problem.path}'",
        "Use a mounted directory, or mount this one.",
    )


_MOUNTS = '[[mounts]]\npath = "/data"\n\n[[mounts]]\npath = "/scratch"\n'
_SAVE = "import torch\nmodel = torch.nn.Linear(2, 2)\ntorch.save(model, '/results/model.pt')\n"

RULE = Rule(
    title="A path is outside the mounts of the target",
    category="path_not_found",
    why="A container or a node sees only what is mounted in it. A path that works on the login "
    "node may not exist there.",
    fix="Use a mounted directory, or mount this one.",
    source="Zhang et al., ICSE 2020, section 4.2; SkyPilot #2505",
    check=path_check("path-outside-mounts", _describe),
    catches=(
        Case({"train.py": "import numpy as np\nnp.load('/nfs/x.npy')\n"}, target=_MOUNTS, line=2),
        Case({"train.py": _SAVE}, target=_MOUNTS, line=3),
        Case(
            {"train.py": "for i in range(4):\n    open(f'/nfs/shards/{i}.bin', 'rb').read()\n"},
            target=_MOUNTS,
            line=2,
        ),
        Case(
            {"train.py": "import os\nos.makedirs('/database/out', exist_ok=True)\n"},
            target=_MOUNTS,
            line=2,
        ),
    ),
    leaves=(
        Case({"train.py": "import numpy as np\nnp.load('/data/x.npy')\n"}, target=_MOUNTS),
        Case({"train.py": _SAVE}, target=_MOUNTS + '\n[[mounts]]\npath = "/"\n'),
        Case({"train.py": "open('/tmp/x.txt', 'w').write('x')\n"}, target=_MOUNTS),
        Case({"train.py": "import os\nos.makedirs('out', exist_ok=True)\n"}, target=_MOUNTS),
        Case({"train.py": _SAVE}),
    ),
)
