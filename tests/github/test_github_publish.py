"""One comment, that says what is true now."""

from __future__ import annotations

import pytest

from epochzero.github import GitHub, PublishResult, RefusedError, publish
from tests.forge import BOT, TOKEN, Forge

MARK = "<!-- epochzero:check -->"


def told(github: GitHub, body: str, needed: bool = True) -> str:
    done = publish(github, 7, body, kind="check", needed=needed, secret=TOKEN)
    return done.act


def test_a_comment_is_posted_once_and_brought_up_to_date(forge: Forge, github: GitHub) -> None:
    assert told(github, "2 errors") == "posted"
    assert told(github, "2 errors") == "unchanged"
    assert told(github, "1 error") == "updated"
    assert told(github, "all clear", needed=False) == "updated"
    assert forge.bodies(7) == [f"{MARK}\nall clear"]


def test_nothing_is_said_where_nothing_is_found(forge: Forge, github: GitHub) -> None:
    assert publish(github, 7, "all clear", kind="check", needed=False) == PublishResult(
        "not needed"
    )
    assert forge.bodies(7) == []


def test_a_comment_of_somebody_else_is_left_alone(forge: Forge, github: GitHub) -> None:
    forge.add(7, f"{MARK}\nmine", "somebody")
    forge.add(7, f"see {MARK}", BOT)
    assert told(github, "1 error") == "posted"
    assert forge.bodies(7)[:2] == [f"{MARK}\nmine", f"see {MARK}"]


def test_each_kind_has_its_own(forge: Forge, github: GitHub) -> None:
    told(github, "1 error")
    publish(github, 7, "here", kind="locate", needed=True)
    assert len(forge.bodies(7)) == 2


def test_of_two_runs_at_once_one_comment_stays(forge: Forge, github: GitHub) -> None:
    for _ in range(2):
        forge.add(7, f"{MARK}\n1 error")
    told(github, "1 error")
    assert forge.bodies(7) == [f"{MARK}\n1 error"]


def test_it_is_found_behind_many_others(forge: Forge, github: GitHub) -> None:
    for n in range(230):
        forge.add(7, str(n), "somebody")
    told(github, "1 error")
    assert told(github, "2 errors") == "updated"
    assert len(forge.bodies(7)) == 231


@pytest.mark.parametrize("there", [True, False])
def test_a_server_that_fails_while_it_posts_is_looked_at_again(
    forge: Forge, github: GitHub, there: bool
) -> None:
    forge.troubles.extend([None, (502, {}, there)])
    assert told(github, "1 error") == ("unchanged" if there else "posted")
    assert forge.bodies(7) == [f"{MARK}\n1 error"]


def test_the_token_is_never_published(forge: Forge, github: GitHub) -> None:
    told(github, f"the file says {TOKEN}")
    assert TOKEN not in forge.bodies(7)[0]


def test_a_token_that_may_not_write_is_told_of(forge: Forge, github: GitHub) -> None:
    forge.read_only = True
    with pytest.raises(RefusedError, match="Resource not accessible") as refused:
        told(github, "1 error")
    assert refused.value.status == 403
