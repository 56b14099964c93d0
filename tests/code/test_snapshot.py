"""Trees and work trees of real repositories: odd ones, broken ones, hostile ones."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochzero.code import snapshot as module
from epochzero.code.snapshot import LARGEST_BYTES, File, Repository, Snapshot
from epochzero.errors import InputError

if TYPE_CHECKING:
    from conftest import Made

ODD = ["a b.py", "q\"uote'.py", "new\nline.py", "täb\tä.py", "-dash.py", ":colon.py", "*.py"]


def contents(snapshot: Snapshot) -> dict[str, bytes]:
    found = list(snapshot.read(snapshot.files))
    assert [file for file, _ in found] == list(snapshot.files)
    assert all(file.size == len(data) for file, data in found)
    return {file.path: data for file, data in found}


def paths(snapshot: Snapshot) -> list[str]:
    return [file.path for file in snapshot.files]


# -- Opening -----------------------------------------------------------------------------------


def test_a_repository_opens_from_anywhere_in_it(made: Made, tmp_path: Path) -> None:
    made.write("pkg/deep/a.py", "a = 1\n")
    commit = made.commit()
    made.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
    made.git("clone", "-q", "--bare", str(made.folder), str(tmp_path / "bare.git"))
    for place in (
        made.folder,
        made.folder / "pkg" / "deep",
        made.folder / ".git",
        tmp_path / "linked",
        tmp_path / "linked" / ".git",
        tmp_path / "bare.git",
    ):
        repository = Repository(place)
        assert repository.resolve().id == commit
        assert contents(repository.snapshot()) == {"pkg/deep/a.py": b"a = 1\n"}
        assert not repository.shallow


def test_what_is_no_repository_is_said(tmp_path: Path, made: Made) -> None:
    with pytest.raises(InputError, match="not a git repository"):
        Repository(tmp_path)
    with pytest.raises(InputError, match="no such directory"):
        Repository(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no such directory"):
        Repository(made.write("a.py"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / ".git").write_text("gitdir: /nowhere\n")
    with pytest.raises(InputError, match="not a git repository"):
        Repository(tmp_path / "broken")


def test_a_repository_without_commits_is_said(made: Made) -> None:
    for look in (Repository(made.folder).snapshot, Repository(made.folder).working_tree):
        with pytest.raises(InputError, match="no commits yet"):
            look()


def test_git_must_be_there(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="git is not installed"):
        Repository(made.folder)


def test_git_that_fails_is_quoted(made: Made) -> None:
    (made.folder / ".git" / "config").write_text("[core\n")
    with pytest.raises(InputError, match="config"):
        Repository(made.folder)


# -- Revisions ---------------------------------------------------------------------------------


def test_revisions_resolve(made: Made) -> None:
    first = made.commit("first")
    second = made.commit("second")
    made.git("tag", "-a", "v1", "-m", "one", first)
    repository = Repository(made.folder)
    assert repository.resolve("v1") == repository.resolve("HEAD~1")
    assert repository.resolve(second[:10]) == (second, made.clock, (first,))
    assert repository.resolve(first).parents == ()


@pytest.mark.parametrize(
    "rev", ["nothing", "-x", "--all", "", "HEAD~9", "a\0b", "f" * 40, "HEAD:a.py"]
)
def test_unknown_revisions_are_said(made: Made, rev: str) -> None:
    made.write("a.py")
    made.commit()
    with pytest.raises(InputError, match="revision"):
        Repository(made.folder).resolve(rev)
    assert Repository(made.folder).resolve()


def test_a_shallow_clone_says_so(made: Made, tmp_path: Path) -> None:
    made.write("a.py", "1")
    made.commit()
    made.write("a.py", "2")
    made.commit()
    made.git("clone", "-q", "--depth=1", f"file://{made.folder}", str(tmp_path / "shallow"))
    repository = Repository(tmp_path / "shallow")
    assert repository.shallow
    assert contents(repository.snapshot()) == {"a.py": b"2"}
    assert len(repository.resolve().parents) == 1
    with pytest.raises(InputError, match="--unshallow"):
        repository.resolve("HEAD~1")


# -- Trees -------------------------------------------------------------------------------------


def test_only_regular_files_are_listed(made: Made, tmp_path: Path) -> None:
    other = type(made)(tmp_path / "other")
    other.write("inner.py")
    other.commit()
    made.write("real.py", "real\n")
    made.write("run.sh", "x").chmod(0o755)
    os.symlink("real.py", made.folder / "link.py")
    os.symlink("loop", made.folder / "loop")
    os.symlink("..", made.folder / "up")
    made.git("submodule", "add", "-q", str(other.folder), "sub")
    made.commit()
    repository = Repository(made.folder)
    expected = [".gitmodules", "real.py", "run.sh"]
    assert paths(repository.snapshot()) == expected
    assert paths(repository.working_tree()) == expected
    assert paths(Repository(made.folder / "sub").working_tree()) == ["inner.py"]


def test_odd_paths_survive(made: Made) -> None:
    names = [os.fsencode(name) for name in ODD] + [b"latin-\xe4.py"]
    for name in names:
        made.write(name, name)
    made.commit()
    for snapshot in (Repository(made.folder).snapshot(), Repository(made.folder).working_tree()):
        found = {os.fsencode(path): data for path, data in contents(snapshot).items()}
        assert found == {name: name for name in names}
        assert "latin-\udce4.py" in paths(snapshot)


def test_files_are_read_in_the_order_asked(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW_FILES", 3)
    for n in range(20):
        made.write(f"f{n}.py", f"{n}\n" * n)
    made.write("empty.py", "")
    made.write("binary.bin", bytes(range(256)) * 9)
    made.commit()
    snapshot = Repository(made.folder).snapshot()
    assert len(contents(snapshot)) == 22
    wanted = [*reversed(snapshot.files), *snapshot.files]
    assert [file for file, _ in snapshot.read(wanted)] == wanted
    one, two = snapshot.read(snapshot.files), snapshot.read(snapshot.files)
    assert list(zip(one, two, strict=True)) == [(x, x) for x in snapshot.read(snapshot.files)]
    started = snapshot.read(snapshot.files)
    next(started)
    assert len(contents(snapshot)) == 22


def test_large_files_are_listed_but_not_read(made: Made) -> None:
    made.write("large.bin", b"x" * (LARGEST_BYTES + 1))
    made.write("limit.bin", b"x" * LARGEST_BYTES)
    made.commit()
    repository = Repository(made.folder)
    for snapshot in (repository.snapshot(), repository.working_tree()):
        assert paths(snapshot) == ["large.bin", "limit.bin"]
        assert [file.path for file, _ in snapshot.read(snapshot.files)] == ["limit.bin"]


def _remove_object(made: Made, name: str) -> None:
    place = made.folder / ".git" / "objects" / name[:2] / name[2:]
    place.chmod(stat.S_IWUSR)
    place.unlink()


def test_a_missing_object_is_named_with_what_to_do(made: Made) -> None:
    made.write("a.py", "here")
    made.write("b.py", "gone")
    made.commit()
    _remove_object(made, made.git("rev-parse", "HEAD:b.py"))
    repository = Repository(made.folder)
    snapshot = repository.snapshot()
    with pytest.raises(InputError, match=r"b\.py.*git fetch"):
        list(snapshot.read(snapshot.files))
    here = [file for file in snapshot.files if file.path == "a.py"]
    assert [data for _, data in snapshot.read(here)] == [b"here"]


def test_a_missing_tree_is_said(made: Made) -> None:
    made.write("pkg/b.py", "gone")
    made.commit()
    _remove_object(made, made.git("rev-parse", "HEAD:pkg"))
    with pytest.raises(InputError, match="ls-tree failed"):
        Repository(made.folder).snapshot()


def test_a_dead_child_is_replaced(made: Made) -> None:
    made.write("a.py", "1")
    made.commit()
    repository = Repository(made.folder)
    snapshot = repository.snapshot()
    child = repository._objects._child
    assert child is not None
    child.kill()
    child.wait()
    assert contents(snapshot) == {"a.py": b"1"}


def test_sha256_repositories_are_read(made: Made, tmp_path: Path) -> None:
    made.git("init", "-q", "--object-format=sha256", str(tmp_path / "made256"))
    made256 = type(made)(tmp_path / "made256")
    made256.write("a.py", "1")
    made256.commit()
    repository = Repository(made256.folder)
    assert len(repository.resolve().id) == 64
    assert repository.working_tree().files == repository.snapshot().files


# -- Work trees --------------------------------------------------------------------------------


def test_a_work_tree_has_what_is_there_now(made: Made) -> None:
    made.write(".gitignore", "*.log\nbuild/\n")
    for name in ("same.py", "edited.py", "deleted.py", "linked.py", "staged.py"):
        made.write(name, f"{name} of old\n")
    commit = made.commit()
    made.write("edited.py", "new\r\n")
    (made.folder / "deleted.py").unlink()
    (made.folder / "linked.py").unlink()
    os.symlink("same.py", made.folder / "linked.py")
    made.write("staged.py", "staged\n")
    made.git("add", "staged.py")
    made.write("staged.py", "after staging\n")
    made.write("sub/fresh.py", "fresh\n")
    made.write("x.log")
    made.write("build/a.py")
    repository = Repository(made.folder / "sub")
    snapshot = repository.working_tree()
    assert snapshot.commit.id == commit
    assert contents(snapshot) == {
        ".gitignore": b"*.log\nbuild/\n",
        "edited.py": b"new\r\n",
        "same.py": b"same.py of old\n",
        "staged.py": b"after staging\n",
        "sub/fresh.py": b"fresh\n",
    }
    for file in snapshot.files:
        assert file.blob == made.git("hash-object", "--no-filters", "--", file.path)
    committed = {file.path: file for file in repository.snapshot().files}
    assert committed["same.py"] in snapshot.files


def test_a_file_that_changes_meanwhile_is_said(made: Made) -> None:
    made.write("a.py", "1")
    made.commit()
    snapshot = Repository(made.folder).working_tree()
    made.write("a.py", "2")
    with pytest.raises(InputError, match="changed while"):
        contents(snapshot)
    (made.folder / "a.py").unlink()
    with pytest.raises(InputError, match="cannot be read"):
        contents(snapshot)


def test_nothing_outside_the_work_tree_is_read(made: Made, tmp_path: Path) -> None:
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "a.py").write_text("secret")
    made.write("pkg/a.py", "1")
    made.write("b.py", "1")
    made.commit()
    shutil.rmtree(made.folder / "pkg")
    os.symlink(secret, made.folder / "pkg")
    (made.folder / "b.py").unlink()
    os.mkfifo(made.folder / "b.py")
    assert paths(Repository(made.folder).working_tree()) == []


def test_a_configured_work_tree_elsewhere_is_none(made: Made, tmp_path: Path) -> None:
    made.write("a.py")
    made.commit()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.py").write_text("secret")
    made.git("config", "core.worktree", str(tmp_path / "elsewhere"))
    repository = Repository(made.folder)
    assert paths(repository.snapshot()) == ["a.py"]
    with pytest.raises(InputError, match="no working tree"):
        repository.working_tree()


def test_a_bare_repository_has_no_work_tree(made: Made, tmp_path: Path) -> None:
    made.commit()
    made.git("clone", "-q", "--bare", str(made.folder), str(tmp_path / "bare"))
    with pytest.raises(InputError, match="no working tree"):
        Repository(tmp_path / "bare").working_tree()


# -- Hostile repositories ----------------------------------------------------------------------


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder with what a write would change."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")
    }


def test_nothing_of_a_repository_runs_and_nothing_is_written(made: Made, tmp_path: Path) -> None:
    from epochzero.code.history import History

    ran = tmp_path / "ran"
    evil = tmp_path / "evil.sh"
    evil.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\ncat\n')
    evil.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in (
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
    ):
        shutil.copy(evil, hooks / hook)
    made.write(".gitattributes", "*.py filter=evil diff=evil\n*.txt diff=evil merge=evil\n")
    made.write("a.py", "1\n" * 30)
    made.write("b.txt", "2\n" * 30)
    made.commit()
    made.git("mv", "a.py", "c.py")
    made.write("b.txt", "3\n" * 30)
    made.commit("move", GIT_COMMITTER_NAME="E")
    signed = made.git("cat-file", "commit", "HEAD").replace(
        "\n\n",
        "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----\n\n",
        1,
    )
    (tmp_path / "signed").write_text(signed + "\n")
    made.git("reset", "-q", made.git("hash-object", "-t", "commit", "-w", str(tmp_path / "signed")))
    shutil.copytree(hooks, made.folder / ".git" / "hooks", dirs_exist_ok=True)
    for key in (
        "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass",
        "core.alternateRefsCommand", "core.gitProxy", "diff.external", "diff.evil.command",
        "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
        "merge.evil.driver", "gpg.program", "gpg.ssh.program", "gpg.x509.program",
        "gpg.ssh.defaultKeyCommand", "credential.helper", "pager.log", "pager.ls-files",
        "uploadpack.packObjectsHook", "alias.log", "alias.ls-tree", "trailer.x.command",
        "sequence.editor", "interactive.diffFilter", "remote.origin.uploadpack",
    ):  # fmt: skip
        value = f"!{evil}" if key.startswith(("alias", "credential")) else str(evil)
        made.git("config", key, value)
    made.git("config", "core.hooksPath", str(hooks))
    made.git("config", "log.showSignature", "true")
    made.git("config", "core.untrackedCache", "true")
    made.git("config", "diff.orderFile", str(tmp_path / "missing"))
    made.git("config", "diff.relative", "true")
    ran.unlink(missing_ok=True)  # what filling the repository has run itself
    os.utime(made.folder / "c.py", (1, 1))
    before = listing(made.folder)

    repository = Repository(made.folder)
    assert len(contents(repository.snapshot())) == 3
    assert len(contents(repository.working_tree())) == 3
    assert len(History(repository).changes) == 2
    with pytest.raises(InputError):
        repository.resolve("nothing")
    assert not ran.exists()
    assert listing(made.folder) == before


@pytest.mark.parametrize("url", ["ext::{evil} %S", "file://{origin}", "ssh://x/y", "evil::x"])
def test_a_partial_clone_fetches_nothing(made: Made, tmp_path: Path, url: str) -> None:
    made.write("a.py", "1\n")
    made.commit()
    made.git("config", "uploadpack.allowFilter", "true")
    made.git("config", "uploadpack.allowAnySHA1InWant", "true")
    made.git("clone", "-q", "--bare", "--filter=blob:none", f"file://{made.folder}",
             str(tmp_path / "partial"))  # fmt: skip
    ran = tmp_path / "ran"
    evil = tmp_path / "git-remote-evil"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\n")
    evil.chmod(0o755)
    config = tmp_path / "partial" / "config"
    for key, value in (
        ("remote.origin.url", url.format(evil=evil, origin=made.folder)),
        ("remote.origin.uploadpack", str(evil)),
        ("core.sshCommand", str(evil)),
        ("protocol.allow", "always"),
        ("protocol.ext.allow", "always"),
        ("protocol.evil.allow", "always"),
    ):
        subprocess.run(["git", "config", "--file", str(config), key, value], check=True)
    before = listing(tmp_path / "partial")
    with pytest.raises(InputError, match="git fetch"):
        list(Repository(tmp_path / "partial").snapshot().read([File("a.py", "", 0)]))
    assert not ran.exists()
    assert listing(tmp_path / "partial") == before


def test_the_users_own_settings_do_not_matter(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.write("a.py", "1")
    made.commit()
    (tmp_path / ".gitconfig").write_text("[core]\nquotepath = nonsense\n[broken\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    assert contents(Repository(made.folder).snapshot()) == {"a.py": b"1"}
    assert not (tmp_path / "trace").exists()


def test_replaced_objects_are_the_original_ones(made: Made) -> None:
    made.write("a.py", "real\n")
    made.commit()
    blob = made.git("rev-parse", "HEAD:a.py")
    made.write("other", "fake\n")
    made.git("replace", blob, made.git("hash-object", "-w", "other"))
    assert contents(Repository(made.folder).snapshot()) == {"a.py": b"real\n"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_owner_opens(made: Made) -> None:
    made.write("a.py", "1")
    made.commit()
    for place in (made.folder, made.folder / ".git"):
        os.chown(place, 4242, 4242)
    assert contents(Repository(made.folder).snapshot()) == {"a.py": b"1"}


def test_many_files_list_fast(made: Made) -> None:
    blob = made.git("hash-object", "-w", str(made.write("a.py", "1\n")))
    lines = "".join(f"100644 {blob}\tp{n % 100}/f{n}.py\n" for n in range(30_000))
    subprocess.run(["git", "update-index", "--index-info"], input=lines.encode(), check=True,
                   cwd=made.folder)  # fmt: skip
    tree = made.git("write-tree")
    commit = made.git("commit-tree", tree, "-m", "many")
    assert len(Repository(made.folder).snapshot(commit).files) == 30_000
