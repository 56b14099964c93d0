"""The job uses names and keywords that the target's version of a library has removed."""

from __future__ import annotations

from epochzero.check.api import ApiChange, Use, installed, is_gone, uses
from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Reach,
    Rule,
    Target,
    at_keyword,
    claim_at,
    guarded,
)

_CATEGORIES = {
    "import": "library_not_found",
    "attribute": "attribute_not_found",
    "keyword": "framework_api_misuse",
    "override": "framework_api_misuse",
}


def _check(program: Program, target: Target) -> Claims:
    reach = Reach.of(program)
    fails: set[ApiChange] = set()
    for use in uses(program):
        if use.change in fails:
            continue
        change = use.change
        is_asked = _is_handled(use) or reach.is_versioned(use.at)
        if is_gone(change, target) and not is_asked:
            if use.kind == "import":
                fails.add(change)  # Code after this event is not reached.
            changed = f"{change.keyword}= of {change.name}" if change.keyword else change.name
            yield claim_at(
                at_keyword(program, use.at, change.keyword) if change.keyword else use.at,
                category=_CATEGORIES[use.kind],
                severity=reach.severity(use.at),
                message=f"{changed} was removed in {change.distribution} {change.removed}; "
                f"the target has {installed(target, change.distribution)}.",
                consequence=_consequence(use),
                fix=f"Use {change.instead}, or pin {change.distribution}<{change.removed}.",
            )


def _is_handled(use: Use) -> bool:
    kinds = {"import": ImportError, "keyword": TypeError}
    return guarded(use.at, kinds.get(use.kind, AttributeError))


def _consequence(use: Use) -> str:
    within, _, last = use.change.name.rpartition(".")
    if use.kind == "import":
        return f"ImportError: cannot import name {use.change.name!r}"
    if use.kind == "keyword":
        return f"TypeError: {last}() got an unexpected keyword argument '{use.change.keyword}'"
    if use.kind == "override":
        return f"{last} is rejected or never called"
    return f"AttributeError: {within} has no attribute '{last}'"


def _packages(**versions: str) -> str:
    lines = ["[distributions]"]
    return "\n".join([*lines, *(f'"{name}" = "{have}"' for name, have in versions.items())])


_NUMPY = {"train.py": "import numpy as np\nmask = np.zeros(4, dtype=np.bool)\n"}
_SCHEDULER = {
    "train.py": "import torch\nfrom torch import nn, optim\n\nmodel = nn.Linear(2, 2)\n"
    "optimizer = optim.SGD(model.parameters(), lr=0.1)\n"
    "scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, 'min', verbose=True)\n"
}
_APPEND = {
    "train.py": "import pandas as pd\n\nframe = pd.read_csv('a.csv')\nframe = frame.append({'a': 1})\n"
}
_LIGHTNING = {
    "train.py": "import pytorch_lightning as pl\n\ntrainer = pl.Trainer(gpus=1, max_epochs=2)\n"
}
_KERAS = {"train.py": "from keras.utils import np_utils\n\nprint(np_utils.to_categorical([1]))\n"}
_JOBLIB = {"train.py": "from sklearn.externals import joblib\nprint(joblib)\n"}
_GUARDED = {
    "train.py": "try:\n    from sklearn.externals import joblib\n"
    "except ImportError:\n    import joblib\nprint(joblib)\n"
}

_SKLEARN = (
    "import sklearn\nfrom sklearn import metrics\n\n"
    "SKLEARN = tuple(int(part) for part in sklearn.__version__.split('.')[:2])\n\n\n"
    "def rmse(truth, guess):\n    if SKLEARN >= (1, 4):\n"
    "        return metrics.root_mean_squared_error(truth, guess)\n"
    "    return metrics.mean_squared_error(truth, guess, squared=False)\n\n\nrmse([1], [1])\n"
)
_FLOAT = "import numpy as np\nprint(np.float64 if not hasattr(np, 'float_') else np.float_)\n"

RULE = Rule(
    title="The job uses a name or keyword that the target's version of a library has removed",
    category="attribute_not_found",
    why="Frameworks change quickly, and the platform's image rarely has the versions of the "
    "author's machine. The call fails when it is reached; evaluation code is reached after "
    "the training.",
    fix="Use the replacement, or pin the version that the job was written for.",
    source="Zhang et al., ICSE 2020, section 5.3, finding 7; release notes named in api_changes.toml",
    check=_check,
    catches=(
        Case(_NUMPY, target=_packages(numpy="1.26.4"), line=2),
        Case(_SCHEDULER, target=_packages(torch="2.7.1"), line=6),
        Case(_APPEND, target=_packages(pandas="2.2.3"), line=4),
        Case(_LIGHTNING, target=_packages(**{"pytorch-lightning": "2.1.0"}), line=3),
        Case(_JOBLIB, target=_packages(**{"scikit-learn": "1.5.0"}), line=1),
        Case(_KERAS, target=_packages(keras="3.3.3"), line=1),
    ),
    leaves=(
        Case(_NUMPY, target=_packages(numpy="1.23.5")),
        Case(_NUMPY, target=_packages(numpy="2.1.0")),
        Case(_NUMPY),
        Case(_KERAS, target=_packages(keras="2.10.0")),
        Case(_SCHEDULER, target=_packages(torch="2.6.0")),
        Case(_APPEND, target=_packages(pandas="1.5.3")),
        Case(_GUARDED, target=_packages(**{"scikit-learn": "1.5.0"})),
        Case({"train.py": _SKLEARN}, target=_packages(**{"scikit-learn": "1.9.1"})),
        Case({"train.py": _FLOAT}, target=_packages(numpy="2.4.6")),
        Case(
            {
                "train.py": "import torch\n\nif torch.__version__ < '1.8':\n"
                "    torch.set_deterministic(True)\n"
            },
            target=_packages(torch="2.4.0"),
        ),
        Case(
            {"train.py": "rows = []\nrows.append(1)\n"},
            target=_packages(pandas="2.2.3", numpy="2.0"),
        ),
    ),
)
