"""A path is outside the mounts of the target."""

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check


def _describe(problem: AccessProblem, paths: PathAnalysis) -> Texts:
    job, target = paths.platform.job, paths.platform.target
    if target.here and job.container:
        where = "no volume of the container, although it exists on this machine"
    else:
        mounts = ", ".join(sorted(mount.path for mount in target.mounts or ()))
        where = f"no mount of {target.name or 'the target'} ({mounts})"
    return (
        f"{problem.access.function} uses {problem.path}, which is in {where}.",
        f"FileNotFoundError: No such file or directory: '{problem.path}'",
        "Use a mounted directory, or mount this one.",
    )


RULE = Rule(
    category="path_not_found",
    why="A container or compute node sees only its own mounts. A path that exists on the login "
    "node may not exist in the container or on the compute node.",
    fix="Use a mounted directory, or mount the missing directory.",
    source="Zhang et al., ICSE 2020, section 4.2; SkyPilot #2505",
    check=path_check("path-outside-mounts", _describe),
    examples="""
        import numpy as np
        np.load('/nfs/x.npy')  # <-
        ==> target.toml <==
        [[mounts]]
        path = "/data"

        [[mounts]]
        path = "/scratch"
        ---- caught if
        -import numpy as np
        -np.load('/nfs/x.npy')  # <-
        +for i in range(4):
        +    open(f'/nfs/shards/{i}.bin', 'rb').read()  # <-
        ---- ignored if
        -np.load('/nfs/x.npy')
        +np.load('/data/x.npy')
        ---- ignored if
        -import numpy as np
        -np.load('/nfs/x.npy')
        +open('/tmp/x.txt', 'w').write('x')
        ---- ignored if
        -import numpy as np
        -np.load('/nfs/x.npy')
        +import os
        +os.makedirs('out', exist_ok=True)
        ---- caught if
        -import numpy as np
        -np.load('/nfs/x.npy')  # <-
        +import torch
        +model = torch.nn.Linear(2, 2)
        +torch.save(model, '/results/model.pt')  # <-
    """,
)
