"""The target lacks shared libraries that a module loads."""

from epochzero.check.program.events import LibraryImport
from epochzero.check.rule import Claims, JobView, Rule, Target, claim_at, guarded
from epochzero.check.view.builds import NeededLibraries, needed_libraries


def _check(view: JobView) -> Claims:
    if view.target.shared_libraries is None:
        return
    reported: set[str] = set()
    for event in view.imports:
        needed = needed_libraries().get(event.module.partition(".")[0])
        if needed is None or needed.module in reported or not _loads(event, needed):
            continue
        missing = _missing(needed, view.target)
        if missing and not guarded(event.at, ImportError, OSError):
            reported.add(needed.module)
            yield claim_at(
                event.at,
                severity=view.reach.severity(event.at),
                message=f"{needed.module} loads {', '.join(missing)}, which the target does not have.",
                consequence=f"ImportError: {missing[0]}: cannot open shared object file: No such file "
                "or directory",
                fix=f"Install these packages in the image: {needed.packages}.",
            )


def _loads(event: LibraryImport, needed: NeededLibraries) -> bool:
    return not needed.within or needed.within in (*event.names, event.module.rpartition(".")[2])


def _missing(needed: NeededLibraries, target: Target) -> list[str]:
    """The first library of each group, if the target has none of the group."""
    have = target.shared_libraries or frozenset()
    packages = target.distributions
    if packages is not None and needed.distribution not in packages:
        return []  # Another distribution provides the module, with its own libraries.
    if needed.unless and (packages is None or needed.unless in packages):
        return []
    if packages is None and needed.module == "cv2":
        return []  # opencv-python-headless provides the same module.
    return [group[0] for group in needed.needs if not any(name in have for name in group)]


RULE = Rule(
    category="library_not_found",
    why="pip installs Python packages but does not install the system libraries that these "
    "packages load. Slim images lack many system libraries.",
    fix="Install the system package of the library in the image, or use a Python package that does "
    "not need the library.",
    source="Zhang et al., ICSE 2020, Table 1, Library Not Found (a Python module or dependent library)",
    check=_check,
    examples="""
        import cv2  # <-
        print(cv2)
        ==> target.toml <==
        shared_libraries = ["libc.so.6"]
        [distributions]
        "opencv-python" = "4.9.0.80"
        ---- ignored if
        -"opencv-python" = "4.9.0.80"
        +"opencv-python-headless" = "4.9.0.80"
        ---- ignored if
        -[distributions]
        -"opencv-python" = "4.9.0.80"
        ---- ignored if
        -import cv2
        +try:
        +    import cv2
        +except ImportError:
        +    cv2 = None
        ----
        from mpi4py import MPI  # <-
        print(MPI)
        ==> target.toml <==
        shared_libraries = ["libc.so.6"]
        [distributions]
        "mpi4py" = "4.0.0"
        ----
        import lightgbm as lgb
        print(lgb)
    """,
)
