"""The accesses of the program to paths, in order: what certainly fails, and what cannot be decided.

Each access gives at most one `AccessProblem`, under the most specific rule.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from epochzero.check.findings import Severity, SourceLocation, Unknown
from epochzero.check.paths.absence import is_reached_if_absent
from epochzero.check.paths.accesses import Access, accesses_of, is_true, parsers_of
from epochzero.check.paths.created_files import CreatedFiles
from epochzero.check.paths.laptop import laptop
from epochzero.check.paths.platform import NOWHERE, Platform, beneath
from epochzero.check.paths.text import PathText
from epochzero.check.program.events import LibraryCall, Situation, argument, guarded
from epochzero.check.program.model import Program
from epochzero.check.target.model import Target
from epochzero.file_access import exists

_MOST_ALIKE = 100
_MOST_SHOWN = 3
_WRITES = ("writes", "appends", "creates", "makes")


@dataclass(frozen=True, slots=True)
class AccessProblem:
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
class InputFile:
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


class PathAnalysis:
    """The problems of the job's accesses to paths.

    Args:
        program: program of the job.
        target: its platform.

    Attributes:
        problems: problems in the order of the program.
        unknowns: reads that cannot be decided: one for each mount, and one for each unknown path that
            is read for evaluation or from checkpoints.
        opened: files that the program reads and that can be inspected.
        platform: the files before the job starts.
        there: whether a path exists at this point of the program; None if unknown.
    """

    def __init__(self, program: Program, target: Target) -> None:
        self.platform = Platform(program.job, target)
        self.problems: list[AccessProblem] = []
        self.unknowns: list[Unknown] = []
        self.opened: list[InputFile] = []
        self._program = program
        self._script = program.job.script
        self._says = program.job.says
        self._files = CreatedFiles(self.platform)
        self._path = self._files.path
        self.there = self._files.there
        self._asked: set[str] = set()
        self._asked_in: set[tuple[str, tuple[SourceLocation, ...]]] = set()
        """Directories whose existence the program certainly checks, with the calls that lead there."""
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
            self._files.continue_from(analyze_paths(program.before, target)._files)
        self._files.prepare(program.job)
        for index, call in enumerate(program.calls):
            self._index = index
            self._step(call, accesses[index])
        self.unknowns += [self._unseen_in(folder) for folder in self._unseen]

    # -- Walking ----------------------------------------------------------------------------------

    def _step(self, call: LibraryCall, accesses: list[Access]) -> None:
        for access in accesses:
            if access.does in _WRITES:
                self._write(access)
            elif access.does == "asks":
                self._ask(access)
            elif access.does == "removes":
                if (path := self._path(access.text)) is not None:
                    self._files.remove(path)
            elif access.does == "globs":
                self._glob(access)
            elif access.does == "enters":
                self._enter(access)
            else:
                self._read(access)
        self._files.call(call)

    def _ask(self, access: Access) -> None:
        path = self._path(access.text)
        if access.call.at.certain:
            self._asked_in.add((path or self._files.parent(access, path), access.call.at.via))
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
        if guarded(at, FileNotFoundError):
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
        certain = at.certain and not (self._files.loose or self._files.any_file or access.use.quiet)
        severity: Severity = "error" if certain and not self._only_there(place) else "warning"
        self._absent(access, place, severity)

    def _missing(self, path: str | None, text: PathText) -> tuple[str, bool | None]:
        """The inspected path and whether it exists: for a partly known path its known directory."""
        if path is not None:
            return path, self.there(path)
        known = self._files.expanded(posixpath.dirname(text.beginning), text)
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
        if known is None or guarded(access.call.at, Exception):
            return
        fixed = known[: re.search(r"[*?\[]|$", known).start()]  # type: ignore[union-attr]
        folder = self.platform.absolute(posixpath.dirname(fixed) or ".")
        local = self.platform.local(folder)
        if self.there(folder) is False and not self._guarded(folder):
            self._absent(access, folder, "warning")
        elif local is not None and not self._files.written_into(folder):
            sure = not (
                self._files.patterns or self._files.may_fill(folder) or self._only_there(folder)
            )
            self.opened.append(InputFile(access, self.platform.absolute(known), local, sure))

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
        if local is None or path in self._files.made or access.does not in ("reads", "lists"):
            return
        # A file that is put into a directory before it is read does not exist yet.
        if not self._files.is_filled(path):
            self.opened.append(InputFile(access, path, local, sure=not self._files.loose))

    def _opened_some(self, access: Access, folder: str) -> None:
        """The possible files of a partly known path: one of them is read."""
        local = self.platform.local(folder)
        if access.text.known is not None or local is None or access.does != "reads":
            return
        pattern = self._files.pattern(access.text)
        for name in self.platform.entries(local)[:_MOST_ALIKE]:
            path = posixpath.join(folder, name)
            if pattern.fullmatch(path) and path not in self._files.made:
                self.opened.append(InputFile(access, path, posixpath.join(local, name), sure=False))

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
            self._files.write_anywhere(access)
            return
        if path is None and text.beginning.startswith("~"):
            return
        self._judge_write(access, path)
        self._files.write(access, path)
        if at.certain and path is not None:
            self._asked.discard(path)

    def _judge_write(self, access: Access, path: str | None) -> None:
        at = access.call.at
        if guarded(at, FileNotFoundError) and guarded(at, PermissionError):
            return
        severity: Severity = (
            "error" if (at.certain or at.loop) and not self._files.loose else "warning"
        )
        parent = self._files.parent(access, path)
        whole = path or parent
        why = laptop(whole, access.text, self.platform)
        if why and self.there(whole) is not True and self.there(parent) is not True:
            self._add("path-laptop", access, whole, severity, why)
        elif self.platform.outside(whole):
            self._add("path-outside-mounts", access, whole, self._in_image(severity))
        elif refusal := self.platform.refusal(whole):
            is_folder = path is not None and self.platform.is_folder(path)
            if not (is_folder and access.does == "makes"):
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
            and not self._files.loose
            and self.there(path) is False
            and any(beneath(text, path) and via == at.via for text, via in self._asked_in)
            and is_reached_if_absent(self._program, at.place)
        )

    def _needs_parent(self, access: Access) -> bool:
        use = access.use
        if access.does == "makes":
            if use.parents == "always":
                return False
            return not use.parents or is_true(argument(access.call, 1, use.parents)) is False
        return use.parent in ("needed", "quiet")

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

    def _add(
        self, rule: str, access: Access, path: str, severity: Severity, detail: str = ""
    ) -> None:
        if (rule, path) not in self._reported:
            self._reported.add((rule, path))
            self.problems.append(AccessProblem(rule, access, path, severity, detail))


def _resumes(access: Access) -> bool:
    """Whether training resumes from the path, judged by the names around it."""
    origin = access.text.origin.code if access.text.origin else ""
    return bool(
        re.search(r"resume|ckpt_path|--(ckpt|checkpoint|init[-_]from)", origin)
        or access.use.path in ("resume_from_checkpoint", "ckpt_path")
    )


_ANALYSES: WeakKeyDictionary[Program, tuple[Target, PathAnalysis]] = WeakKeyDictionary()


def analyze_paths(program: Program, target: Target) -> PathAnalysis:
    """Analyze the paths of a program on a target; computed once for all rules."""
    known = _ANALYSES.get(program)
    if known is None or known[0] is not target:
        known = (target, PathAnalysis(program, target))
        _ANALYSES[program] = known
    return known[1]
