"""The job uses a name or keyword that the target's version of a library has removed."""

from epochzero.check.rule import Claims, JobView, Rule, at_keyword, claim_at, guarded
from epochzero.check.view.api import ApiChange, ApiUse, installed, is_gone, uses

_CATEGORIES = {
    "import": "library_not_found",
    "attribute": "attribute_not_found",
    "keyword": "illegal_argument",
    "override": "framework_api_misuse",
}


def _check(view: JobView) -> Claims:
    reach = view.reach
    fails: set[ApiChange] = set()
    for use in uses(view.program):
        if use.change in fails:
            continue
        change = use.change
        is_asked = _is_handled(use) or reach.is_versioned(use.at)
        if is_gone(change, view.target) and not is_asked:
            if use.kind == "import":
                fails.add(change)  # Code after this event is not reached.
            changed = f"{change.keyword}= of {change.name}" if change.keyword else change.name
            yield claim_at(
                at_keyword(view.program, use.at, change.keyword) if change.keyword else use.at,
                category=_CATEGORIES[use.kind],
                severity=reach.severity(use.at),
                message=f"{changed} was removed in {change.distribution} {change.removed}; "
                f"the target has {installed(view.target, change.distribution)}.",
                consequence=_consequence(use),
                fix=f"Use {change.instead}, or pin {change.distribution}<{change.removed}.",
            )


def _is_handled(use: ApiUse) -> bool:
    kinds = {"import": ImportError, "keyword": TypeError}
    return guarded(use.at, kinds.get(use.kind, AttributeError))


def _consequence(use: ApiUse) -> str:
    within, _, last = use.change.name.rpartition(".")
    if use.kind == "import":
        return f"ImportError: cannot import name {use.change.name!r}"
    if use.kind == "keyword":
        return f"TypeError: {last}() got an unexpected keyword argument '{use.change.keyword}'"
    if use.kind == "override":
        return f"{last} is rejected or never called"
    return f"AttributeError: {within} has no attribute '{last}'"


RULE = Rule(
    category="attribute_not_found",
    why="Frameworks change quickly, and the platform's image rarely has the same versions as the "
    "author's machine. The code fails only when it runs. Evaluation code runs after the training.",
    fix="Use the replacement, or pin the library to the version that the job was written for.",
    source="Zhang et al., ICSE 2020, section 5.3, finding 7; release notes named in api_changes.toml",
    check=_check,
    examples="""
        import numpy as np
        mask = np.zeros(4, dtype=np.bool)  # <-
        ==> target.toml <==
        [distributions]
        "numpy" = "1.26.4"
        ----
        import torch
        from torch import nn, optim

        model = nn.Linear(2, 2)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, 'min', verbose=True)  # <-
        ==> target.toml <==
        [distributions]
        "torch" = "2.7.1"
        ----
        import pandas as pd

        frame = pd.read_csv('a.csv')
        frame = frame.append({'a': 1})  # <-
        ==> target.toml <==
        [distributions]
        "pandas" = "2.2.3"
        ----
        from keras.utils import np_utils  # <-

        print(np_utils.to_categorical([1]))
        ==> target.toml <==
        [distributions]
        "keras" = "3.3.3"
        ---- ignored if
        -"keras" = "3.3.3"
        +"keras" = "2.10.0"
        ----
        try:
            from sklearn.externals import joblib
        except ImportError:
            import joblib
        print(joblib)
        ==> target.toml <==
        [distributions]
        "scikit-learn" = "1.5.0"
        ----
        import sklearn
        from sklearn import metrics

        SKLEARN = tuple(int(part) for part in sklearn.__version__.split('.')[:2])


        def rmse(truth, guess):
            if SKLEARN >= (1, 4):
                return metrics.root_mean_squared_error(truth, guess)
            return metrics.mean_squared_error(truth, guess, squared=False)


        rmse([1], [1])
        ==> target.toml <==
        [distributions]
        "scikit-learn" = "1.9.1"
        ----
        import numpy as np
        print(np.float64 if not hasattr(np, 'float_') else np.float_)
        ==> target.toml <==
        [distributions]
        "numpy" = "2.4.6"
        ----
        import torch

        if torch.__version__ < '1.8':
            torch.set_deterministic(True)
        ==> target.toml <==
        [distributions]
        "torch" = "2.4.0"
        ----
        rows = []
        rows.append(1)
        ==> target.toml <==
        [distributions]
        "pandas" = "2.2.3"
        "numpy" = "2.0"
    """,
)
