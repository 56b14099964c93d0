"""The program writes to a path that the user cannot write to."""

from epochzero.check.paths.analysis import AccessProblem, PathAnalysis
from epochzero.check.rule import Rule
from epochzero.check.rules.path_claims import Texts, path_check


def _describe(problem: AccessProblem, paths: PathAnalysis) -> Texts:
    shown = paths.platform.shown(problem.path)
    return (
        f"{problem.access.function} writes {shown}, but {problem.detail}.",
        f"PermissionError: '{shown}' (or OSError: Read-only file system)",
        "Write to a directory that you own and that is writable on the target. Take its path "
        "from an argument.",
    )


RULE = Rule(
    category="permission_denied",
    why="Clusters often mount data sets read-only. Cluster users are usually not administrators. A "
    "job writes checkpoints and results late, so the failure also comes late.",
    fix="Write to a directory that you own. Take its path from an argument.",
    source="Zhang et al., ICSE 2020, Table 1: Permission Denied; section 5.1: validate permissions "
    "early",
    check=path_check("path-not-writable", _describe),
    examples="""
        import torch
        model = torch.nn.Linear(2, 2)
        torch.save(model, '/data/model.pt')  # <-
        ==> target.toml <==
        [[mounts]]
        path = "/data"
        writable = false

        [[mounts]]
        path = "/scratch"
        ---- ignored if
        -model = torch.nn.Linear(2, 2)
        -torch.save(model, '/data/model.pt')
        +torch.load('/data/model.pt')
        ---- caught if
        -import torch
        -model = torch.nn.Linear(2, 2)
        -torch.save(model, '/data/model.pt')  # <-
        +import pandas as pd
        +frame = pd.DataFrame()
        +for i in range(3):
        +    frame.to_csv(f'/data/out/{i}.csv')  # <-
        ---- ignored if
        -import torch
        -model = torch.nn.Linear(2, 2)
        -torch.save(model, '/data/model.pt')
        +try:
        +    open('/data/lock', 'w').close()
        +except OSError:
        +    pass
        ---- caught if
        -import torch
        -model = torch.nn.Linear(2, 2)
        -torch.save(model, '/data/model.pt')  # <-
        +import sys
        +from pathlib import Path
        +
        +
        +def table(folder):
        +    target = folder / f"{sys.byteorder}{sys.maxunicode}.npy"
        +    if target.exists():
        +        return target
        +    folder.mkdir(parents=True, exist_ok=True)  # <-
        +    return target
        +
        +
        +table(Path("/data/cache"))
        @@
         ==> target.toml <==
        +listed = ["/data"]
        +[files]
        +"/data" = true
        +"/data/a.csv" = true
        +
        ----
        $ docker run -v /raid:/data:ro image python train.py
        import torch
        model = torch.nn.Linear(2, 2)
        torch.save(model, '/data/model.pt')  # <-
        ----
        $ kubectl create -f pod.yaml
        import torch
        model = torch.nn.Linear(2, 2)
        torch.save(model, '/data/model.pt')  # <-
        ==> pod.yaml <==
        apiVersion: v1
        kind: Pod
        spec:
          containers:
            - image: gnn
              workingDir: /job
              command: [python, train.py]
              volumeMounts: [{name: work, mountPath: /data, readOnly: true}]
          volumes: [{name: work, emptyDir: {}}]
        ==> target.toml <==
        [[mounts]]
        path = "/"
        writable = false
        ---- ignored if
        -      volumeMounts: [{name: work, mountPath: /data, readOnly: true}]
        +      volumeMounts: [{name: work, mountPath: /data}]
        ----
        $ docker run --user 1000:1000 image python train.py
        import os
        os.makedirs('/root/.cache/x', exist_ok=True)  # <-
        ----
        open('/results.txt', 'w').write('x')
        ----
        $ docker run --tmpfs /data:size=1g image python train.py
        import torch
        model = torch.nn.Linear(2, 2)
        torch.save(model, '/data/model.pt')
        ==> target.toml <==
        [[mounts]]
        path = "/"
        writable = false
        ----
        open('/results.txt', 'w').write('x')  # <-
        ==> target.toml <==
        [user]
        name = "mara"
        uid = 1000
        home = "/home/mara"
        ---- ignored if
        -open('/results.txt', 'w').write('x')
        +open('/tmp/results.txt', 'w').write('x')
    """,
)
