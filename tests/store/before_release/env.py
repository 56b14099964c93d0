"""How alembic reaches the store: by the connection that opened it."""

from __future__ import annotations

from alembic import context

from epochzero.store.schema import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
)
context.run_migrations()
