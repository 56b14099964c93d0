"""The stored catalogue is the parsed one, and changes with every signature."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import hyperscan
import pytest

from epochzero import compiled
from epochzero.diagnose import Catalog, Diagnoser, Signature, builtin, catalog, load_folder
from epochzero.logs import patterns
from epochzero.logs.patterns import PatternSet
from epochzero.logs.source import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

build: Callable[[], Catalog] = builtin.__wrapped__
FIRST = "pytorch/cuda-out-of-memory"


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """The only place from which this process loads stored items."""
    before, place = compiled._directory, tmp_path / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "BUILT", tmp_path / "none")
        compiled.use(place)
        yield place
    compiled.use(before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of some signatures in place of all of them."""
    place = tmp_path / "signatures"
    shutil.copytree(catalog.BUILTIN / "pytorch", place / "pytorch")
    monkeypatch.setattr(catalog, "BUILTIN", place)
    return place


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the signatures that are parsed from now on."""
    names: list[str] = []
    parse = catalog._parsed

    def noting(name: str, *arguments: Any, **options: Any) -> Signature:
        names.append(name)
        return parse(name, *arguments, **options)

    monkeypatch.setattr(catalog, "_parsed", noting)
    return names


def test_the_stored_catalogue_is_the_parsed_one(directory: Path, parsed: list[str]) -> None:
    first = build()
    assert len(parsed) == len(first) > 1000
    second = build()
    assert len(parsed) == len(first)
    reference = Catalog(load_folder(catalog.BUILTIN, examples=False))
    names = [field.name for field in fields(Signature)]
    for one, other, third in zip(first, second, reference, strict=True):
        assert one == other == third
        for name in names:
            assert type(getattr(other, name)) is type(getattr(third, name)), (other.name, name)
    assert first.anchors == second.anchors == reference.anchors


def edited(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("title = ", "title = 'Other' #", 1), encoding="utf-8")


CHANGES: dict[str, Callable[[Path], object]] = {
    "edited": edited,
    "removed": lambda path: path.unlink(),
    "renamed": lambda path: path.rename(path.with_name("new-name.toml")),
    "moved": lambda path: shutil.move(path, path.parent.parent / path.name),
    "added": lambda path: shutil.copy(path, path.with_name("new-name.toml")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_of_a_signature_makes_it_new(
    directory: Path, folder: Path, parsed: list[str], change: Callable[[Path], object]
) -> None:
    build()
    parsed.clear()
    change(folder / f"{FIRST}.toml")
    assert list(build()) == list(Catalog(load_folder(folder, examples=False)))
    assert parsed


def test_an_edit_that_keeps_size_and_time_is_noticed(directory: Path, folder: Path) -> None:
    build()
    path = folder / f"{FIRST}.toml"
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"memory", b"MEMORY", 1))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert list(build()) == list(Catalog(load_folder(folder, examples=False)))


def test_a_damaged_file_is_replaced(directory: Path, folder: Path, parsed: list[str]) -> None:
    first = build()
    parsed.clear()
    (item,) = directory.iterdir()
    item.write_bytes(item.read_bytes()[:-10])
    assert list(build()) == list(first)
    assert len(parsed) == len(first)
    parsed.clear()
    assert list(build()) == list(first)
    assert not parsed


@pytest.mark.parametrize("mode", ["unreadable", "file", "unset"])
def test_without_a_cache_the_catalogue_is_the_same(
    directory: Path, folder: Path, mode: str
) -> None:
    if mode == "file":
        directory.write_text("in the way")
    elif mode == "unreadable":
        directory.mkdir(mode=0o777)
        directory.chmod(0o777)
    else:
        compiled.use(None)
    assert list(build()) == list(Catalog(load_folder(folder, examples=False)))


WORDS = [b"one", b"t+wo", b"three\\d"]
TEXT = b"one ttwo three3 three"


def test_a_stored_database_finds_the_same(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = PatternSet(WORDS)
    made = patterns._compiled

    def refuse(some: Any, flags: int) -> Any:
        assert len(some) == 1, "compiled again"
        return made(some, flags)

    monkeypatch.setattr(patterns, "_compiled", refuse)
    second = PatternSet(WORDS)
    assert first.ends(TEXT) == second.ends(TEXT) == [(3, 0), (8, 1), (15, 2)]
    assert second.walk(TEXT, lambda _number, _end: True)
    with pytest.raises(AssertionError):
        PatternSet(WORDS, once=True)
    with pytest.raises(AssertionError):
        PatternSet(WORDS[:2])


def test_databases_differ_by_their_options(directory: Path) -> None:
    for _ in range(2):
        assert PatternSet([b"a+"], starts=True).spans(b"xaa")[-1] == (1, 3, 0)
        assert PatternSet([b"a"], once=True).ends(b"aaa") == [(1, 0)]
        assert PatternSet([b"a"]).ends(b"aaa") == [(1, 0), (2, 0), (3, 0)]


def test_a_database_that_the_engine_refuses_is_compiled_again(directory: Path) -> None:
    PatternSet(WORDS)
    (item,) = directory.iterdir()
    compiled.store(item.name, b"no database")
    assert compiled.load(item.name) == b"no database"
    assert PatternSet(WORDS).ends(TEXT) == [(3, 0), (8, 1), (15, 2)]
    stored = compiled.load(item.name)
    assert stored is not None
    assert hyperscan.loadb(stored, hyperscan.HS_MODE_BLOCK).size() > 0


def test_a_diagnosis_from_stored_items_is_the_same(directory: Path) -> None:
    log = [Log("train.log", text=b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")]
    first = Diagnoser(build()).diagnose(log)
    second = Diagnoser(build()).diagnose(log)
    assert first == second
    assert first.category == "gpu_out_of_memory"


def test_starts_at_the_same_time_agree(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    command = [sys.executable, "-m", "epochzero", "diagnose", str(log), "--format", "json"]
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(3)]
    answers = {process.communicate()[0] for process in running}
    answers.add(subprocess.run(command, capture_output=True, env=environment, check=True).stdout)
    assert len(answers) == 1
    assert b"gpu_out_of_memory" in answers.pop()
    names = {path.name for path in (tmp_path / "cache" / "epochzero" / "compiled").iterdir()}
    assert len(names) == 4, "catalogue, launchers, and two databases"


@pytest.mark.parametrize("home", ["/proc", "/dev/null"])
def test_a_home_that_cannot_be_written_is_no_error(tmp_path: Path, home: str) -> None:
    log = tmp_path / "train.log"
    log.write_text("KeyError: 'lr'\n")
    command = [sys.executable, "-m", "epochzero", "diagnose", str(log)]
    ran = subprocess.run(command, capture_output=True, env={"HOME": home}, text=True, check=True)
    assert ran.stderr == ""


def test_own_signatures_are_found_too(tmp_path: Path) -> None:
    own = tmp_path / "own" / "lab"
    own.mkdir(parents=True)
    example = '[[examples]]\nlog = "LabError: share of quota %s"\n'
    (own / "share.toml").write_text(
        'title = "Lab share"\nmeaning = "It is full."\npattern = "share of quota (?P<name>\\\\w+)"\n'
        'anchors = ["share of quota"]\ncategory = "storage_full"\nretry = "fails_again"\n'
        + example
        % "scratch"
    )
    log = tmp_path / "train.log"
    log.write_text("LabError: share of quota scratch\n")
    command = [sys.executable, "-m", "epochzero", "diagnose", str(log), "--signatures"]
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    for title in ("Lab share", "Lab share", "Lab disk"):
        path = own / "share.toml"
        path.write_text(path.read_text().replace("Lab share", title))
        ran = subprocess.run(
            [*command, str(own.parent)], capture_output=True, env=environment, text=True, check=True
        )
        assert title in ran.stdout
