"""What is put in the place of others' attributes goes away again."""

from __future__ import annotations

from epochzero.injected.patches import Patches


class Base:
    def own(self) -> str:
        return "base"


class Derived(Base):
    pass


def test_all_is_as_before_also_what_is_inherited_or_put_twice() -> None:
    before = Base.own
    patches = Patches()
    patches.put(Derived, "own", lambda self: "derived")
    patches.put(Base, "own", lambda self: "first")
    patches.put(Base, "own", lambda self: "second")
    assert (Derived().own(), Base().own()) == ("derived", "second")
    patches.remove()
    assert Base.own is before
    assert "own" not in vars(Derived)


def test_what_else_was_put_in_place_is_undone_the_latest_first() -> None:
    done: list[int] = []
    patches = Patches()
    patches.undone_by(lambda: done.append(1))
    patches.undone_by(lambda: done.append(2))
    patches.remove()
    patches.remove()
    assert done == [2, 1]
