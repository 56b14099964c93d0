"""Python rejects imports within the job's own code."""

from __future__ import annotations

from epochzero.check.rule import (
    Claims,
    JobView,
    Rule,
    claim_failure,
    examples,
    failures,
)

_CIRCULAR = "circular import"


def _check(view: JobView) -> Claims:
    reported: set[str] = set()
    for failed in failures(view.program, "import"):
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


RULE = Rule(
    title="An import of the job's own code fails",
    category="library_not_found",
    why="Two modules import names from each other, or a script of a package runs as a file. The "
    "code exists, but the import fails.",
    fix="Break the cycle, or run the module with `python -m`.",
    source="Python documentation, The import system, section 5.7; FAQ, How do I share global variables",
    check=_check,
    cases=examples("""
        import model

        print(model.build())
        ==> model.py <==
        from loss import weight


        def build():
            return 1
        ==> loss.py <==
        from model import build  # <-

        weight = build
        ---- ignored if
        -from loss import weight
        +def build():
        +    return 1
        @@
        -def build():
        -    return 1
        +from loss import weight
        ----
        from .model import build  # <-

        build()
        ==> model.py <==
        def build():
            return 1
        ---- ignored if
        -from .model import build
        +try:
        +    from .model import build
        +except ImportError:
        +    from model import build
        ----
        import lib.run
        ==> lib/__init__.py <==
        ==> lib/run.py <==
        from ..model import build  # <-
        ==> model.py <==
        def build():
            return 1
        ----
        import model

        print(model.build())
        ==> model.py <==
        import loss


        def build():
            return 1
        ==> loss.py <==
        import model


        def f():
            return model.build()
        ----
        $ python -m lib.run
        ==> lib/__init__.py <==
        ==> lib/run.py <==
        from .model import build

        build()
        ==> lib/model.py <==
        def build():
            return 1
    """),
)
