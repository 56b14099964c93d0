"""An absolute path lies in no file system of the target."""

from __future__ import annotations

from epochzero.check.paths.report import Told, path_check
from epochzero.check.paths.world import Problem, World
from epochzero.check.rules.base import Case, Rule


def _tell(problem: Problem, world: World) -> Told:
    job, target = world.platform.job, world.platform.target
    if target.here and job.container:
        where = "no volume of the container, though it is on this machine"
    else:
        mounts = ", ".join(sorted(one.path for one in target.mounts or ()))
        where = f"no mount of {target.name or 'the target'} ({mounts})"
    return (
        f"{problem.access.function} takes {problem.path}, which is in {where}.",
        f"FileNotFoundError: No such file or directory: '{problem.path}'",
        "Use a folder that is mounted, or have this one mounted.",
    )


_MOUNTS = '[[mounts]]\npath = "/data"\n\n[[mounts]]\npath = "/scratch"\n'
_SAVE = "import torch\nmodel = torch.nn.Linear(2, 2)\ntorch.save(model, '/results/model.pt')\n"

RULE = Rule(
    title="A path lies outside of what the target mounts",
    category="path_not_found",
    why="A container or a node sees only what is mounted in it; a path that works on the login "
    "node is not there.",
    fix="Use a folder that is mounted, or have this one mounted.",
    source="Zhang et al., ICSE 2020, section 4.2; SkyPilot #2505",
    check=path_check("path-outside-mounts", _tell),
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
