"""The job uses names and keywords that a later version of a library removes."""

from __future__ import annotations

from epochzero.check.api import ApiChange, installed, reached, uses
from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Reach,
    Rule,
    Target,
    claim_at,
)


def _check(program: Program, target: Target) -> Claims:
    reach = Reach.of(program)
    for use in uses(program):
        change = use.change
        have = installed(target, change.distribution)
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


def _packages(name: str, version: str) -> str:
    return f'[distributions]\n"{name}" = "{version}"\n'


_AMP = {"train.py": "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"}
_NUMPY = {"train.py": "import numpy as np\nprint(np.float(1))\n"}
_TRAINER = {
    "train.py": "from transformers import TrainingArguments\n"
    "args = TrainingArguments('out', evaluation_strategy='epoch')\n"
}
_WEIGHTS = {
    "train.py": "from torchvision import models\n\nmodel = models.resnet18(pretrained=True)\n"
}

_TRAPEZOIDS = (
    "import numpy as np\ntrapezoid = np.trapezoid if hasattr(np, 'trapezoid') else np.trapz\n",
    "import numpy as np\ntrapezoid = getattr(np, 'trapezoid', None) or np.trapz\n",
    "import numpy as np\nnew = getattr(np, 'trapezoid', None)\nprint((np.trapz if new is None else new)([1]))\n",
    "import numpy as np\ntry:\n    trapezoid = np.trapezoid\nexcept AttributeError:\n    trapezoid = np.trapz\n",
    "import numpy as np\nfrom packaging.version import Version\nNEW = Version(np.__version__) >= Version('2')\n"
    "print(np.trapezoid([1]) if NEW else np.trapz([1]))\n",
    "import numpy as np\nNUMPY = tuple(int(one) for one in np.__version__.split('.')[:2])\n\n\n"
    "def area(y):\n    if NUMPY >= (2, 0):\n        return np.trapezoid(y)\n    return np.trapz(y)\n\n\narea([1])\n",
    "import numpy as np\n\n\ndef is_new():\n    return int(np.__version__.split('.')[0]) >= 2\n\n\n"
    "def old(y):\n    return np.trapz(y)\n\n\nprint(np.trapezoid([1]) if is_new() else old([1]))\n",
    "try:\n    from numpy import trapezoid\n    NEW = True\nexcept ImportError:\n    NEW = False\n"
    "import numpy as np\nif not NEW:\n    trapezoid = np.trapz\n",
)
"""The ways to write code that supports several versions."""

RULE = Rule(
    title="The job uses a name or keyword that a later version of a library removes",
    category="framework_api_misuse",
    why="The call still works on the target. The next image of the platform may contain the "
    "version that removes it, and then the same job fails.",
    fix="Use the replacement.",
    source="Zhang et al., ICSE 2020, section 5.3, finding 7; release notes named in api_changes.toml",
    check=_check,
    catches=(
        Case(_AMP, target=_packages("torch", "2.5.1"), line=3),
        Case(_NUMPY, target=_packages("numpy", "1.22.0"), line=2),
        Case(_TRAINER, target=_packages("transformers", "4.42.0"), line=2),
        Case(_WEIGHTS, target=_packages("torchvision", "0.15.2"), line=3),
    ),
    leaves=(
        Case(_AMP, target=_packages("torch", "2.1.0")),
        Case(_AMP),
        *(Case({"train.py": text}, target=_packages("numpy", "2.4.6")) for text in _TRAPEZOIDS),
        Case(
            {
                "train.py": "try:\n    from torch.amp import autocast\nexcept ImportError:\n"
                "    from torch.cuda.amp import autocast\n"
            },
            target=_packages("torch", "2.5.1"),
        ),
        Case(_NUMPY, target=_packages("numpy", "1.26.0")),
        Case(_TRAINER, target=_packages("transformers", "4.40.0")),
        Case(
            {"train.py": "import torch\n\nscaler = torch.amp.GradScaler('cuda')\n"},
            target=_packages("torch", "2.6.0"),
        ),
    ),
)
