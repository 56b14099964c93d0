"""The files of the target during the job: those that exist at first, and those that the program makes.

The calls of the program are processed in order. A file exists after it is written. A file that may
have been written (by an unknown call, or into a directory that a library fills) may exist. Each
access to a path gives at most one `Problem`, under the most specific rule.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from epochzero.check.findings import Severity, SourceLocation, Unknown
from epochzero.check.launch.model import CommandSource, Job
from epochzero.check.launch.python import is_python
from epochzero.check.paths.absent import is_reached_if_absent
from epochzero.check.paths.accesses import Access, accesses_of, argument, is_true, parsers_of
from epochzero.check.paths.catalogue import canonical, uses
from epochzero.check.paths.laptop import laptop
from epochzero.check.paths.platform import NOWHERE, Platform, beneath
from epochzero.check.paths.text import PathText, texts_in
from epochzero.check.program.events import Called, Situation
from epochzero.check.program.model import Program
from epochzero.check.target.model import Target
from epochzero.file_access import exists

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
_MOST_ALIKE = 100
_MOST_SHOWN = 3
_WRITES = ("writes", "appends", "creates", "makes")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of one access.

    Attributes:
        rule: id of the rule that reports it.
        access: the call and its path.
        path: absolute path of the access, or of the directory above it.
        severity: severity of the finding.
        detail: what the message of the rule needs: another name, a reason.
    """

    rule: str
    access: Access
    path: str
    severity: Severity
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """A readable file that exists before the job starts and that the program reads.

    Attributes:
        access: call that reads it.
        path: its path, or the pattern that the call searches.
        local: its location on this machine.
        sure: whether it is certainly read; a partly known path may be one of several.
    """

    access: Access
    path: str
    local: str
    sure: bool = True


def caught(at: Situation, *exceptions: type[BaseException]) -> bool:
    """Whether a handler around the event catches all of the exceptions."""
    names = {name.rpartition(".")[2] for name in at.handled}
    names |= {"OSError"} if names & {"IOError", "EnvironmentError"} else set()
    return all(
        any(parent.__name__ in names for parent in exception.__mro__) for exception in exceptions
    )


class World:
    """The state of the files during the job.

    Args:
        program: program of the job.
        target: its platform.

    Attributes:
        problems: problems in the order of the program.
        unknowns: reads that cannot be decided: one for each mount, and one for each unknown path that
            is read for evaluation or from checkpoints.
        opened: files that the program reads and that can be inspected.
        platform: the files before the job starts.
    """

    def __init__(self, program: Program, target: Target) -> None:
        self.platform = Platform(program.job, target)
        self.problems: list[Problem] = []
        self.unknowns: list[Unknown] = []
        self.opened: list[Opened] = []
        self._program = program
        self._script = program.job.script
        self._says = program.job.says
        self._made: dict[str, bool] = {}
        self._filled: set[str] = set()
        self._patterns: list[re.Pattern[str]] = []
        self._asked: set[str] = set()
        self._asked_in: set[tuple[str, tuple[SourceLocation, ...]]] = set()
        """Directories whose existence the program certainly checks, with the calls that lead there."""
        self._loose = False
        """Whether any file may have been created, by a program or in an unknown directory."""
        self._any_file = False
        """Whether a file was written under an unknown path."""
        self._reported: set[tuple[str, str]] = set()
        self._unseen: dict[str, dict[str, Situation]] = {}
        """Paths that are read in directories of the target with unknown contents, by directory."""
        parsers = parsers_of(program)
        accesses = [list(accesses_of(call, parsers)) for call in program.calls]
        self._writes: dict[str, list[tuple[int, bool]]] = {}
        """Where known paths are written, by the index of the call, and whether that is certain."""
        for index, of_call in enumerate(accesses):
            self._note_writes(index, of_call)
        self._index = 0
        if program.before is not None:
            self._go_on_from(world_of(program.before, target))
        self._prepare(program.job)
        for index, call in enumerate(program.calls):
            self._index = index
            self._step(call, accesses[index])
        self.unknowns += [self._unseen_in(folder) for folder in self._unseen]

    # -- Before the program -----------------------------------------------------------------------

    def _go_on_from(self, earlier: World) -> None:
        """The files of a program that runs earlier; uncertain, since it may have been skipped."""
        self._made.update(dict.fromkeys(earlier._made, False))
        self._filled |= earlier._filled
        self._patterns += earlier._patterns
        self._loose = earlier._loose
        self._any_file = earlier._any_file

    def _prepare(self, job: Job) -> None:
        """The files that the script creates before the program starts."""
        for source in (*job.launch_script.makes, *job.launch_script.writes):
            path = self.platform.absolute(posixpath.join(job.base.as_posix(), source.text))
            if _is_before(source, job):
                while path not in ("/", self.platform.folder):
                    self._made.setdefault(path, False)
                    path = posixpath.dirname(path)
        for source in job.launch_script.programs:
            name = posixpath.basename(source.text)
            known = name in _HARMLESS | {"mkdir", *job.launchers} or is_python(name)
            if not known and _is_before(source, job):
                self._fill(_words(source.place.code))

    # -- Walking ----------------------------------------------------------------------------------

    def _step(self, call: Called, accesses: list[Access]) -> None:
        for access in accesses:
            if access.does in _WRITES:
                self._write(access)
            elif access.does == "asks":
                self._ask(access)
            elif access.does == "removes":
                self._remove(access)
            elif access.does == "globs":
                self._glob(access)
            elif access.does == "enters":
                self._enter(access)
            else:
                self._read(access)
        if _PROGRAMS.match(call.name):
            self._run(call)
        elif uses(call.name) is None and not _NO_FILES.match(canonical(call.name)):
            for value in (*call.arguments, *call.keywords.values()):
                for text in texts_in(value):
                    self._may_make(text)

    def _run(self, call: Called) -> None:
        """Another program runs: it may create what its command line names, or anything."""
        words = [
            word
            for value in (*call.arguments, *call.keywords.values())
            for text in texts_in(value)
            for word in _words(text.beginning)
        ]
        self._run_words(words)

    def _run_words(self, words: list[str]) -> None:
        if words and words[0].rpartition("/")[2] in _HARMLESS:
            return
        self._fill(words)

    def _fill(self, words: Iterable[str]) -> None:
        """A program that runs may create what its command line names, or anything."""
        self._loose = True
        for word in words:
            self._filled.add(self.platform.absolute(word))
            self._filled.add(self.platform.absolute(posixpath.basename(word.rstrip("/")) or word))
        self._filled.discard(self.platform.folder)

    def _may_make(self, text: PathText) -> None:
        path = self._path(text)
        if path is not None and path != self.platform.folder and path != "/":
            self._filled.add(path)
        elif path is None and text.beginning.strip("./"):
            self._patterns.append(self._pattern(text))

    def _remove(self, access: Access) -> None:
        path = self._path(access.text)
        if path is not None:
            for one in [created for created in self._made if beneath(created, path)]:
                del self._made[one]

    def _ask(self, access: Access) -> None:
        path = self._path(access.text)
        if access.call.at.certain:
            self._asked_in.add((path or self._parent(access, path), access.call.at.via))
        if path is None:
            return
        self._asked.add(path)
        # A missed file would be silent if the command line names it and the program only checks it.
        origin = access.text.origin
        resumes = self._says(origin) and _resumes(access)
        if resumes and self.there(path) is False and access.call.at.certain:
            self._add("resume-missing", access, path, "warning", "skipped")

    # -- Reading ----------------------------------------------------------------------------------

    def _read(self, access: Access) -> None:
        text, at = access.text, access.call.at
        path = self._path(text)
        if path is None and not text.beginning:
            self._not_known(access)
            return
        if path is not None and access.use.among and not self._is_local(text, path):
            return
        if caught(at, FileNotFoundError):
            return
        place, there = self._missing(path, text)
        foreign = laptop(place, text, self.platform) or self.platform.outside(place)
        if there is not False and not (foreign and there is None):
            if path is not None and there:
                self._opened(access, path)
            elif there is None:
                self._not_known(access)
                self._opened_some(access, place)
            return
        if (at.later or not at.certain) and (
            self._guarded(place) or self._written_later(place, sure=False)
        ):
            return
        certain = at.certain and not (self._loose or self._any_file or access.use.quiet)
        severity: Severity = "error" if certain and not self._only_there(place) else "warning"
        self._absent(access, place, severity)

    def _missing(self, path: str | None, text: PathText) -> tuple[str, bool | None]:
        """The inspected path and whether it exists: for a partly known path its known directory."""
        if path is not None:
            return path, self.there(path)
        known = self._expanded(posixpath.dirname(text.beginning), text)
        folder = self.platform.absolute(known)
        at_home = text.home and known.startswith("~")
        return folder, False if not at_home and self.there(folder) is False else None

    def _absent(self, access: Access, path: str, severity: Severity) -> None:
        """Report a missing path that is read, under the most specific rule."""
        why = laptop(path, access.text, self.platform)
        origin = access.text.origin
        at_command = self._says(origin)
        if why:
            self._add("path-laptop", access, path, severity, why)
        elif self.platform.outside(path):
            self._add("path-outside-mounts", access, path, self._in_image(severity))
        elif access.call.at.certain and self._written_later(path, sure=True):
            self._add("path-read-before-written", access, path, severity)
        elif access.use.checkpoint and (at_command or _resumes(access)):
            self._add("resume-missing", access, path, severity)
        elif other := self.platform.other_case(path):
            mount = self.platform.mount(path)
            if mount is None or mount.case_sensitive:
                self._add("path-wrong-case", access, path, severity, self.platform.shown(other))
        elif beside := self._beside_script(access.text):
            self._add("path-relative", access, path, severity, beside)
        else:
            near = self._with_slashes(path) or self.platform.near(path)
            detail = self.platform.shown(near) if near else ""
            self._add("path-not-found", access, path, severity, detail)

    def _with_slashes(self, path: str) -> str | None:
        r"""The existing path if ``\`` is a separator, as on Windows; None if none exists."""
        other = posixpath.normpath(path.replace("\\", "/"))
        return other if "\\" in path and self.platform.there(other) else None

    def _enter(self, access: Access) -> None:
        """The program changes its current directory."""
        path = self._path(access.text)
        self._read(access)
        sure = path is not None and access.call.at.certain
        self.platform.current = path if sure and path else NOWHERE

    def _beside_script(self, text: PathText) -> str:
        """The path relative to the script's directory, if it exists there and not in the working directory."""
        known, script = text.known, self._script
        if known is None or script is None or posixpath.isabs(known):
            return ""
        path = posixpath.normpath(posixpath.join(str(script.parent), known))
        inside = beneath(str(script.parent), self.platform.root)
        return self.platform.shown(path) if inside and exists(path) else ""

    def _only_there(self, path: str) -> bool:
        """Whether the path may exist only on the target: git ignores it, and this is not the target."""
        return not self.platform.target.here and self.platform.ignored(path)

    def _glob(self, access: Access) -> None:
        known = access.text.known
        if known is None or caught(access.call.at, Exception):
            return
        fixed = known[: re.search(r"[*?\[]|$", known).start()]  # type: ignore[union-attr]
        folder = self.platform.absolute(posixpath.dirname(fixed) or ".")
        local = self.platform.local(folder)
        if self.there(folder) is False and not self._guarded(folder):
            self._absent(access, folder, "warning")
        elif local is not None and not self._written_into(folder):
            sure = not (self._patterns or self._may_fill(folder))
            self.opened.append(Opened(access, self.platform.absolute(known), local, sure))

    def _written_into(self, folder: str) -> bool:
        """Whether the program has written anything into the directory."""
        inside = re.escape(folder.rstrip("/") + "/")
        return any(beneath(created, folder) for created in self._made) or any(
            pattern.pattern.startswith(inside) for pattern in self._patterns
        )

    def _may_fill(self, folder: str) -> bool:
        """Whether a directory may contain more than is known here."""
        return (
            self._loose
            or self._any_file
            or self._only_there(folder)
            or any(beneath(folder, filled) for filled in self._filled)
        )

    def _not_known(self, access: Access) -> None:
        """An undecided read is reported only if it occurs late or reads a checkpoint."""
        at, text = access.call.at, access.text
        path = self._path(text)
        placed = path is not None and not self.platform.travels(path)
        if placed and path is not None and not beneath(path, NOWHERE):
            if self.platform.of_system(path):
                return
            mount = self.platform.mount(path)
            folder = mount.path if mount and mount.path != "/" else f"/{path.split('/')[1]}"
            self._unseen.setdefault(folder, {}).setdefault(path, at)
            return
        if at.phase != "evaluation" and not access.use.checkpoint:
            return
        shown = text.known or (f"{text.beginning}..." if text.beginning else "a path")
        reason = (
            "it is unknown whether this path exists on the target"
            if text.known
            else text.reason or "the path is determined at run time"
        )
        self.unknowns.append(
            Unknown(f"whether {shown} exists for {access.function}", reason, at.place)
        )

    def _unseen_in(self, folder: str) -> Unknown:
        """The paths that the job reads in one directory of the target with unknown contents."""
        paths = self._unseen[folder]
        first = ", ".join(list(paths)[:_MOST_SHOWN])
        more = f" and {len(paths) - _MOST_SHOWN} more" if len(paths) > _MOST_SHOWN else ""
        return Unknown(
            f"whether {first}{more} exists" if len(paths) == 1 else f"whether {first}{more} exist",
            f"the contents of {folder} on the target are unknown; `epochzero target capture "
            f"--list {folder}` records them",
            next(iter(paths.values())).place,
        )

    def _opened(self, access: Access, path: str) -> None:
        local = self.platform.local(path)
        if local is None or path in self._made or access.does not in ("reads", "lists"):
            return
        # A file that is put into a directory before it is read does not exist yet.
        if not any(beneath(one, path) for one in (*self._made, *self._filled)):
            self.opened.append(Opened(access, path, local, sure=not self._loose))

    def _opened_some(self, access: Access, folder: str) -> None:
        """The possible files of a partly known path: one of them is read."""
        local = self.platform.local(folder)
        if access.text.known is not None or local is None or access.does != "reads":
            return
        pattern = self._pattern(access.text)
        for name in self.platform.entries(local)[:_MOST_ALIKE]:
            path = posixpath.join(folder, name)
            if pattern.fullmatch(path) and path not in self._made:
                self.opened.append(Opened(access, path, posixpath.join(local, name), sure=False))

    def _is_local(self, text: PathText, path: str) -> bool:
        """Whether the text, which may be a name in a hub, is a path."""
        known = text.known or ""
        first = self.platform.absolute(known.split("/")[0] or "/")
        return (
            known.startswith(("/", "./", "../", "~"))
            or known.count("/") > 1
            or ("/" in known and self.there(first) is True)
            or self.there(path) is True
        )

    def _in_image(self, severity: Severity) -> Severity:
        """At most a warning in a container whose image may contain what is not mounted."""
        seen_here = self.platform.target.here and self.platform.job.container
        return "warning" if seen_here else severity

    # -- Writing ----------------------------------------------------------------------------------

    def _write(self, access: Access) -> None:
        text, at = access.text, access.call.at
        path = self._path(text)
        if path is None and "/" not in text.beginning.removeprefix("~/"):
            self._write_anywhere(access)
            return
        if path is None and text.beginning.startswith("~"):
            return
        self._judge_write(access, path)
        self._register(access, path)
        if path is None:
            self._patterns.append(self._pattern(text))
        if at.certain and path is not None:
            self._asked.discard(path)

    def _write_anywhere(self, access: Access) -> None:
        """A file is written to an unknown path: it may be one that is read later."""
        if any(access.text.parts):
            self._patterns.append(self._pattern(access.text))
        elif access.does == "makes" or access.use.parent == "made":
            self._loose = True
        else:
            self._any_file = True

    def _judge_write(self, access: Access, path: str | None) -> None:
        at = access.call.at
        if caught(at, FileNotFoundError, PermissionError):
            return
        severity: Severity = "error" if (at.certain or at.loop) and not self._loose else "warning"
        parent = self._parent(access, path)
        whole = path or parent
        why = laptop(whole, access.text, self.platform)
        if why and self.there(whole) is not True and self.there(parent) is not True:
            self._add("path-laptop", access, whole, severity, why)
        elif self.platform.outside(whole):
            self._add("path-outside-mounts", access, whole, self._in_image(severity))
        elif refusal := self.platform.refusal(whole):
            if not (self._exists_folder(access, path) and access.does == "makes"):
                severity = "error" if self._is_made_if_absent(access, path) else severity
                self._add("path-not-writable", access, whole, severity, refusal)
        elif self._needs_parent(access) and self.there(parent) is False:
            severity = "warning" if access.use.parent == "quiet" else severity
            if not self._guarded(parent) or at.certain:
                self._add("path-parent-missing", access, parent, severity)

    def _is_made_if_absent(self, access: Access, path: str | None) -> bool:
        """Whether a directory is created because its contents are missing, as they certainly are."""
        at = access.call.at
        return (
            path is not None
            and access.does == "makes"
            and not self._loose
            and self.there(path) is False
            and any(beneath(one, path) and via == at.via for one, via in self._asked_in)
            and is_reached_if_absent(self._program, at.place)
        )

    def _parent(self, access: Access, path: str | None) -> str:
        if path is not None:
            return posixpath.dirname(path)
        folder = posixpath.dirname(access.text.beginning)
        return self.platform.absolute(self._expanded(folder, access.text))

    def _exists_folder(self, access: Access, path: str | None) -> bool:
        return path is not None and self.platform.is_folder(path)

    def _needs_parent(self, access: Access) -> bool:
        use = access.use
        if access.does == "makes":
            if use.parents == "always":
                return False
            return not use.parents or is_true(argument(access.call, 1, use.parents)) is False
        return use.parent in ("needed", "quiet")

    def _register(self, access: Access, path: str | None) -> None:
        """The path exists from now on, even if the write fails, so that it is reported once."""
        sure = access.call.at.certain
        for one in (path, self._parent(access, path)):
            while one and one != "/" and one != self.platform.folder:
                if one == path or access.does == "makes" or self.there(one) is not True:
                    self._made[one] = self._made.get(one, False) or sure
                one = posixpath.dirname(one)
        if path is not None and access.use.folder:
            self._filled.add(path)

    # -- What is there ----------------------------------------------------------------------------

    def there(self, path: str) -> bool | None:
        """Whether the path exists now; None if unknown."""
        if path in self._made or beneath(self.platform.folder, path):
            return True
        before = self.platform.there(path)
        if before is not False:
            return before
        may = any(beneath(path, filled) or beneath(filled, path) for filled in self._filled) or any(
            pattern.fullmatch(path) for pattern in self._patterns
        )
        return None if may else False

    def _guarded(self, path: str) -> bool:
        """Whether the program checked the path, or a directory above it, earlier."""
        return any(beneath(path, asked) for asked in self._asked)

    def _written_later(self, path: str, *, sure: bool) -> bool:
        return any(
            index > self._index and (certain or not sure)
            for index, certain in self._writes.get(path, ())
        )

    def _note_writes(self, index: int, accesses: list[Access]) -> None:
        for access in accesses:
            path = self._path(access.text)
            if path is not None and access.does in _WRITES:
                at = access.call.at
                self._writes.setdefault(path, []).append((index, at.certain or at.loop))

    # -- Helpers ----------------------------------------------------------------------------------

    def _path(self, text: PathText) -> str | None:
        """The absolute path; None if it is not fully known."""
        if text.known is None:
            return None
        expanded = self._expanded(text.known, text)
        return None if expanded.startswith("~") and text.home else self.platform.absolute(expanded)

    def _expanded(self, known: str, text: PathText) -> str:
        user = self.platform.target.user
        if text.home and user and user.home and re.match(r"~(/|$)", known):
            return user.home + known[1:]
        return known

    def _pattern(self, text: PathText) -> re.Pattern[str]:
        first = text.parts[0]
        relative = first is not None and not first.startswith("/")
        parts = (self.platform.folder + "/", *text.parts)
        return (PathText(parts) if relative else text).pattern

    def _add(
        self, rule: str, access: Access, path: str, severity: Severity, detail: str = ""
    ) -> None:
        if (rule, path) not in self._reported:
            self._reported.add((rule, path))
            self.problems.append(Problem(rule, access, path, severity, detail))


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


def _resumes(access: Access) -> bool:
    """Whether training resumes from the path, judged by the names around it."""
    origin = access.text.origin.code if access.text.origin else ""
    return bool(
        re.search(r"resume|ckpt_path|--(ckpt|checkpoint|init[-_]from)", origin)
        or access.use.path in ("resume_from_checkpoint", "ckpt_path")
    )


_WORLDS: WeakKeyDictionary[Program, tuple[Target, World]] = WeakKeyDictionary()


def world_of(program: Program, target: Target) -> World:
    """The world of a program on a target; computed once for all rules."""
    known = _WORLDS.get(program)
    if known is None or known[0] is not target:
        known = (target, World(program, target))
        _WORLDS[program] = known
    return known[1]
