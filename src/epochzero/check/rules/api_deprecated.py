"""The job uses names and keywords that a later version of a library removes."""

from __future__ import annotations

from epochzero.check.rule import Claims, JobView, Rule, claim_at, examples
from epochzero.check.view.api import ApiChange, installed, reached, uses


def _check(view: JobView) -> Claims:
    reach = view.reach
    for use in uses(view.program):
        change = use.change
        have = installed(view.target, change.distribution)
        if have and _is_announced(change, have) and not reach.is_versioned(use.at):
            changed = f"{change.keyword}= of {change.name}" if change.keyword else change.name
            until = f" and removed in {change.removed}" if change.removed else ""
            yield claim_at(
                use.at,
                severity="warning",
                message=f"{changed} is deprecated since {change.distribution} {change.deprecated}"
                f"{until}; the target has {have}.",
                consequence="A warning now, and a failure after an update of the image",
                fix=f"Use {change.instead}.",
            )


def _is_announced(change: ApiChange, have: str) -> bool:
    if not change.deprecated or not reached(have, change.deprecated):
        return False
    return not change.removed or not reached(have, change.removed)


RULE = Rule(
    title="The job uses a name or keyword that a later version of a library removes",
    category="framework_api_misuse",
    why="The call still works on the target. The next image of the platform may contain the "
    "version that removes it, and then the same job fails.",
    fix="Use the replacement.",
    source="Zhang et al., ICSE 2020, section 5.3, finding 7; release notes named in api_changes.toml",
    check=_check,
    cases=examples("""
        import torch

        scaler = torch.cuda.amp.GradScaler()  # <-
        ==> target.toml <==
        [distributions]
        "torch" = "2.5.1"
        ---- ignored if
        -"torch" = "2.5.1"
        +"torch" = "2.1.0"
        ----
        import numpy as np
        print(np.float(1))  # <-
        ==> target.toml <==
        [distributions]
        "numpy" = "1.22.0"
        ---- ignored if
        -"numpy" = "1.22.0"
        +"numpy" = "1.26.0"
        ----
        from transformers import TrainingArguments
        args = TrainingArguments('out', evaluation_strategy='epoch')  # <-
        ==> target.toml <==
        [distributions]
        "transformers" = "4.42.0"
        ---- ignored if
        -"transformers" = "4.42.0"
        +"transformers" = "4.40.0"
        ----
        from torchvision import models

        model = models.resnet18(pretrained=True)  # <-
        ==> target.toml <==
        [distributions]
        "torchvision" = "0.15.2"
        ----
        import torch

        scaler = torch.cuda.amp.GradScaler()
        ----
        import numpy as np
        trapezoid = getattr(np, 'trapezoid', None) or np.trapz
        ==> target.toml <==
        [distributions]
        "numpy" = "2.4.6"
        ---- ignored if
        -trapezoid = getattr(np, 'trapezoid', None) or np.trapz
        +trapezoid = np.trapezoid if hasattr(np, 'trapezoid') else np.trapz
        ---- ignored if
        -trapezoid = getattr(np, 'trapezoid', None) or np.trapz
        +new = getattr(np, 'trapezoid', None)
        +print((np.trapz if new is None else new)([1]))
        ----
        import numpy as np
        try:
            trapezoid = np.trapezoid
        except AttributeError:
            trapezoid = np.trapz
        ==> target.toml <==
        [distributions]
        "numpy" = "2.4.6"
        ----
        import numpy as np
        from packaging.version import Version
        NEW = Version(np.__version__) >= Version('2')
        print(np.trapezoid([1]) if NEW else np.trapz([1]))
        ==> target.toml <==
        [distributions]
        "numpy" = "2.4.6"
        ----
        import numpy as np
        NUMPY = tuple(int(one) for one in np.__version__.split('.')[:2])


        def area(y):
            if NUMPY >= (2, 0):
                return np.trapezoid(y)
            return np.trapz(y)


        area([1])
        ==> target.toml <==
        [distributions]
        "numpy" = "2.4.6"
        ----
        import numpy as np


        def is_new():
            return int(np.__version__.split('.')[0]) >= 2


        def old(y):
            return np.trapz(y)


        print(np.trapezoid([1]) if is_new() else old([1]))
        ==> target.toml <==
        [distributions]
        "numpy" = "2.4.6"
        ----
        try:
            from numpy import trapezoid
            NEW = True
        except ImportError:
            NEW = False
        import numpy as np
        if not NEW:
            trapezoid = np.trapz
        ==> target.toml <==
        [distributions]
        "numpy" = "2.4.6"
        ----
        try:
            from torch.amp import autocast
        except ImportError:
            from torch.cuda.amp import autocast
        ==> target.toml <==
        [distributions]
        "torch" = "2.5.1"
        ----
        import torch

        scaler = torch.amp.GradScaler('cuda')
        ==> target.toml <==
        [distributions]
        "torch" = "2.6.0"
    """),
)
