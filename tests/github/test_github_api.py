"""GitHub's REST API against a server that answers as it does."""

from __future__ import annotations

import time

import pytest

from epochzero.errors import InputError
from epochzero.github import GitHub, RefusedError, api
from epochzero.github.api import UnsureError
from tests.forge import REPOSITORY, Forge

NOW = {"Retry-After": "0"}


def test_changed_files_come_in_pages_and_without_those_removed(
    forge: Forge, github: GitHub
) -> None:
    forge.files[7] = [{"filename": f"f{n}.py", "status": "modified"} for n in range(250)]
    forge.files[7][3]["status"] = "removed"
    changed = github.changed_files(7)
    assert len(changed) == 249
    assert "f3.py" not in changed
    assert len(forge.asked) == 3


@pytest.mark.parametrize(
    "trouble",
    [(500, NOW), (502, NOW), (429, NOW), (403, NOW), (403, {"X-RateLimit-Remaining": "0"} | NOW)],
)
def test_what_may_succeed_later_is_asked_again(
    forge: Forge, github: GitHub, trouble: tuple[int, dict[str, str]]
) -> None:
    forge.add(7, "hello", "somebody")
    forge.troubles.extend([(*trouble, False)] * 2)
    assert [one.body for one in github.comments(7)] == ["hello"]
    assert len(forge.asked) == 3


def test_without_advice_the_pauses_grow(
    forge: Forge, github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    forge.troubles.extend([(503, {}, False)] * 9)
    with pytest.raises(RefusedError, match="returned 503 for GET") as refused:
        github.changed_files(7)
    assert refused.value.status == 503
    assert pauses == [1.0, 2.0, 4.0]


def test_a_limit_that_ends_too_late_is_told(forge: Forge, github: GitHub) -> None:
    later = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 3000)}
    forge.troubles.append((403, later, False))
    with pytest.raises(InputError, match="try again later") as told:
        github.changed_files(7)
    assert not isinstance(told.value, RefusedError)
    assert len(forge.asked) == 1


def test_what_is_refused_is_not_asked_again(forge: Forge) -> None:
    forge.files[7] = []
    with pytest.raises(RefusedError, match="401 for GET /pulls/7/files: Bad credentials"):
        GitHub(REPOSITORY, "wrong", forge.url).changed_files(7)
    assert len(forge.asked) == 1


def test_a_comment_is_not_posted_twice_by_asking_again(forge: Forge, github: GitHub) -> None:
    forge.troubles.append((502, NOW, True))
    with pytest.raises(UnsureError):
        github.post(7, "hello")
    assert forge.bodies(7) == ["hello"]


def test_a_server_that_is_not_there_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_PAUSES_S", (0.0, 0.0))
    with pytest.raises(InputError, match="does not respond"):
        GitHub(REPOSITORY, "", "http://127.0.0.1:9").changed_files(7)
