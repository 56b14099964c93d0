"""Python rejects imports within the job's own code."""

from __future__ import annotations

from epochzero.check.rules.base import (
    Case,
    Claims,
    Program,
    Rule,
    Target,
    claim_failure,
    failures,
)

_CIRCULAR = "circular import"


def _check(program: Program, target: Target) -> Claims:
    reported: set[str] = set()
    for failed in failures(program, "import"):
        is_circular = _CIRCULAR in failed.message
        if not is_circular and failed.message in reported:
            continue  # Later ones fail for the same reason.
        reported.add(failed.message)
        yield claim_failure(
            failed,
            message="The modules import each other, and the name is not defined yet."
            if is_circular
            else "A relative import requires a package.",
            fix=(
                "Move the shared code to a third module, or import it in the function that uses it."
            )
            if is_circular
            else (
                "Run it with `python -m package.module` in the parent directory of the package, "
                "or import without the dot."
            ),
        )


_MODEL = "def build():\n    return 1\n"

RULE = Rule(
    title="An import of the job's own code fails",
    category="library_not_found",
    why="Two modules import names from each other, or a script of a package runs as a file. The "
    "code exists, but the import fails.",
    fix="Break the cycle, or run the module with `python -m`.",
    source="Python documentation, The import system, section 5.7; FAQ, How do I share global variables",
    check=_check,
    catches=(
        Case({"train.py": "import model\n\nprint(model.build())\n",
              "model.py": f"from loss import weight\n\n\n{_MODEL}",
              "loss.py": "from model import build\n\nweight = build\n"}, line=1, path="loss.py"),
        Case({"train.py": "from .model import build\n\nbuild()\n", "model.py": _MODEL}, line=1),
        Case({"train.py": "import lib.run\n", "lib/__init__.py": "", "lib/run.py": "from ..model import build\n",
              "model.py": _MODEL}, line=1, path="lib/run.py"),
    ),
    leaves=(
        Case({"train.py": "import model\n\nprint(model.build())\n",
              "model.py": f"{_MODEL}\n\nfrom loss import weight\n",
              "loss.py": "from model import build\n\nweight = build\n"}),
        Case({"train.py": "import model\n\nprint(model.build())\n",
              "model.py": f"import loss\n\n\n{_MODEL}", "loss.py": "import model\n\n\ndef f():\n"
              "    return model.build()\n"}),
        Case({"train.py": "try:\n    from .model import build\nexcept ImportError:\n"
              "    from model import build\n\nbuild()\n", "model.py": _MODEL}),
        Case({"lib/__init__.py": "", "lib/run.py": "from .model import build\n\nbuild()\n",
              "lib/model.py": _MODEL}, command=("python", "-m", "lib.run")),
    ),
)  # fmt: skip
