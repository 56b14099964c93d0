"""Named searches of a team."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select

from epochzero.errors import InputError
from epochzero.store.bulk_insert import insert_or_update
from epochzero.store.database import Database
from epochzero.store.schema import SavedSearch

_LONGEST_NAME = 60
_LONGEST_ADDRESS = 2000
_PAGES = ("/jobs?", "/failures?")


@dataclass(frozen=True, slots=True)
class NamedSearch:
    """A search; ``address`` is a page with its query string."""

    name: str
    address: str


def saved_searches(database: Database, team: str, page: str = "/") -> Sequence[NamedSearch]:
    """The searches of a team on a page, by name."""
    query = select(SavedSearch).where(
        SavedSearch.team == team, SavedSearch.address.startswith(page, autoescape=True)
    )
    with database.read() as session:
        rows = session.scalars(query.order_by(SavedSearch.name)).all()
        return [NamedSearch(row.name, row.address) for row in rows]


def save_search(database: Database, team: str, name: str, address: str, author: str) -> None:
    """Saves a search; one of the same name is replaced.

    Raises:
        InputError: the name is empty, or the address is not one of a list of jobs or issues.
    """
    if not 0 < len(name) <= _LONGEST_NAME:
        raise InputError(f"write a name of at most {_LONGEST_NAME} characters")
    if not address.startswith(_PAGES) or len(address) > _LONGEST_ADDRESS:
        raise InputError("only searches of jobs and issues can be saved")
    row = {"team": team, "name": name, "address": address, "author": author}
    with database.write() as session:
        insert_or_update(session, SavedSearch, ("team", "name"), [row])


def remove_search(database: Database, team: str, name: str) -> None:
    """Deletes a search, if it exists."""
    with database.write() as session:
        session.execute(
            delete(SavedSearch).where(SavedSearch.team == team, SavedSearch.name == name)
        )
