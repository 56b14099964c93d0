"""The files that exist while the program runs: those of the platform, and those that it has created so far.

A file that may have been written (by an unknown call, or into a directory that a library fills) may exist.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator

from epochzero.check.launch.model import CommandSource, Job
from epochzero.check.launch.python import is_python
from epochzero.check.paths.accesses import Access
from epochzero.check.paths.catalogue import canonical, uses
from epochzero.check.paths.platform import Platform, beneath
from epochzero.check.paths.text import PathText, texts_in
from epochzero.check.program.events import LibraryCall

_NO_FILES = re.compile(
    r"(builtins|pathlib|os\.path|logging|argparse|click|warnings|math|random|time|datetime|re|rich|tqdm"
    r"|loguru|pprint|collections|itertools|functools|typing|copy|json\.dumps|torch\.(nn|optim)"
    r"|wandb|mlflow|pandas|numpy|os\.environ|os\.getenv|sys|string|hashlib)\b"
)
"""Functions that do not create files at their paths; those that do are in the catalogue."""
_PROGRAMS = re.compile(r"(subprocess\.\w+|os\.(system|popen|exec\w+|spawn\w+)|sh\.\w+)$")
_HARMLESS = frozenset(
    """
    git nvidia-smi hostname whoami date echo uname which pip pip3 ls cat lscpu free df du ps
    """.split()
)


class CreatedFiles:
    """What the program, its launch script and earlier programs have created, and may have created.

    Args:
        platform: the files before the job starts.

    Attributes:
        made: paths that were created, and whether that is certain.
        patterns: partly known paths that were written.
        loose: whether any file may have been created, by a program or in an unknown directory.
        any_file: whether a file was written under an unknown path.
    """

    def __init__(self, platform: Platform) -> None:
        self.made: dict[str, bool] = {}
        self.patterns: list[re.Pattern[str]] = []
        self.loose = False
        self.any_file = False
        self._platform = platform
        self._filled: set[str] = set()
        """Paths that may have been created, or into which anything may have been written."""

    # -- Before the program -----------------------------------------------------------------------

    def continue_from(self, earlier: CreatedFiles) -> None:
        """Add the files of a program that runs earlier; uncertain, since it may have been skipped."""
        self.made.update(dict.fromkeys(earlier.made, False))
        self._filled |= earlier._filled
        self.patterns += earlier.patterns
        self.loose = earlier.loose
        self.any_file = earlier.any_file

    def prepare(self, job: Job) -> None:
        """Add the files that the script creates before the program starts."""
        for source in (*job.launch_script.makes, *job.launch_script.writes):
            path = self._platform.absolute(posixpath.join(job.base.as_posix(), source.text))
            if _is_before(source, job):
                while path not in ("/", self._platform.folder):
                    self.made.setdefault(path, False)
                    path = posixpath.dirname(path)
        for source in job.launch_script.programs:
            name = posixpath.basename(source.text)
            known = name in _HARMLESS | {"mkdir", *job.launchers} or is_python(name)
            if not known and _is_before(source, job):
                self._fill(_words(source.place.code))

    # -- While it runs ----------------------------------------------------------------------------

    def call(self, call: LibraryCall) -> None:
        """Account for a call that is not known to access a path: it may create what its arguments name."""
        if _PROGRAMS.match(call.name):
            self._run(call)
        elif uses(call.name) is None and not _NO_FILES.match(canonical(call.name)):
            for value in (*call.arguments, *call.keywords.values()):
                for text in texts_in(value):
                    self._may_make(text)

    def _run(self, call: LibraryCall) -> None:
        """Another program runs: it may create what its command line names, or anything."""
        words = [
            word
            for value in (*call.arguments, *call.keywords.values())
            for text in texts_in(value)
            for word in _words(text.beginning)
        ]
        if not words or words[0].rpartition("/")[2] not in _HARMLESS:
            self._fill(words)

    def _fill(self, words: Iterable[str]) -> None:
        """A program that runs may create what its command line names, or anything."""
        self.loose = True
        for word in words:
            self._filled.add(self._platform.absolute(word))
            self._filled.add(self._platform.absolute(posixpath.basename(word.rstrip("/")) or word))
        self._filled.discard(self._platform.folder)

    def _may_make(self, text: PathText) -> None:
        path = self.path(text)
        if path is not None and path != self._platform.folder and path != "/":
            self._filled.add(path)
        elif path is None and text.beginning.strip("./"):
            self.patterns.append(self.pattern(text))

    def remove(self, path: str) -> None:
        """Forget a path and everything in it."""
        for created in [created for created in self.made if beneath(created, path)]:
            del self.made[created]

    def write_anywhere(self, access: Access) -> None:
        """A file is written to an unknown path: it may be one that is read later."""
        if any(access.text.parts):
            self.patterns.append(self.pattern(access.text))
        elif access.does == "makes" or access.use.parent == "made":
            self.loose = True
        else:
            self.any_file = True

    def write(self, access: Access, path: str | None) -> None:
        """The path exists from now on, even if the write fails, so that it is reported once."""
        sure = access.call.at.certain
        for written in (path, self.parent(access, path)):
            while written and written != "/" and written != self._platform.folder:
                if written == path or access.does == "makes" or self.there(written) is not True:
                    self.made[written] = self.made.get(written, False) or sure
                written = posixpath.dirname(written)
        if path is None:
            self.patterns.append(self.pattern(access.text))
        elif access.use.folder:
            self._filled.add(path)

    # -- What exists ------------------------------------------------------------------------------

    def there(self, path: str) -> bool | None:
        """Whether the path exists now; None if unknown."""
        if path in self.made or beneath(self._platform.folder, path):
            return True
        before = self._platform.there(path)
        if before is not False:
            return before
        may = any(beneath(path, filled) or beneath(filled, path) for filled in self._filled) or any(
            pattern.fullmatch(path) for pattern in self.patterns
        )
        return None if may else False

    def written_into(self, folder: str) -> bool:
        """Whether the program has written anything into the directory."""
        inside = re.escape(folder.rstrip("/") + "/")
        return any(beneath(created, folder) for created in self.made) or any(
            pattern.pattern.startswith(inside) for pattern in self.patterns
        )

    def may_fill(self, folder: str) -> bool:
        """Whether a directory may contain more than is known here."""
        return (
            self.loose or self.any_file or any(beneath(folder, filled) for filled in self._filled)
        )

    def is_filled(self, path: str) -> bool:
        """Whether a file in the directory may have been created before it is read."""
        return any(beneath(created, path) for created in (*self.made, *self._filled))

    # -- Paths ------------------------------------------------------------------------------------

    def path(self, text: PathText) -> str | None:
        """The absolute path; None if it is not fully known."""
        if text.known is None:
            return None
        expanded = self.expanded(text.known, text)
        return None if expanded.startswith("~") and text.home else self._platform.absolute(expanded)

    def expanded(self, known: str, text: PathText) -> str:
        """The path with the home directory of the target's user in place of ``~``."""
        user = self._platform.target.user
        if text.home and user and user.home and re.match(r"~(/|$)", known):
            return user.home + known[1:]
        return known

    def pattern(self, text: PathText) -> re.Pattern[str]:
        """The absolute paths that a partly known path may be."""
        first = text.parts[0]
        relative = first is not None and not first.startswith("/")
        parts = (self._platform.folder + "/", *text.parts)
        return (PathText(parts) if relative else text).pattern

    def parent(self, access: Access, path: str | None) -> str:
        """The directory in which an access happens."""
        if path is not None:
            return posixpath.dirname(path)
        folder = posixpath.dirname(access.text.beginning)
        return self._platform.absolute(self.expanded(folder, access.text))


def _is_before(source: CommandSource, job: Job) -> bool:
    """Whether a command of the job's script precedes the program, as far as is known."""
    place, at = source.place, job.at
    # Commands nested in quotes have no column of their own.
    is_above = (place.line, place.column) <= (at.line, at.column)
    return place.path != at.path or is_above


def _words(text: str) -> Iterator[str]:
    """The words of a command line, without its options."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return (word for word in words if word and not word.startswith("-"))
