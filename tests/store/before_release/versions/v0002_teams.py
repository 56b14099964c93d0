"""Teams in one store: whose a job is, tokens, sessions, and what people say of failures."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes the tables; the jobs that are there are this machine's."""
    op.add_column("jobs", sa.Column("team", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "teams",
        sa.Column("name", sa.String(length=20), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_teams")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", ID, nullable=False),
        sa.Column("team", sa.String(length=20), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("expires", sa.Float(precision=53), nullable=True),
        sa.Column("revoked", sa.Float(precision=53), nullable=True),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("token_id", ID, nullable=False),
        sa.Column("csrf", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("expires", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["token_id"], ["tokens.id"], name=op.f("fk_sessions_token_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_token_id"), "sessions", ["token_id"])
    op.create_table(
        "audit",
        sa.Column("id", ID, nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_team_time"), "audit", ["team", "time"])
    op.create_table(
        "webhooks",
        sa.Column("id", ID, nullable=False),
        sa.Column("team", sa.String(length=20), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("hours", sa.Float(precision=53), nullable=True),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index(op.f("ix_webhooks_team"), "webhooks", ["team"])
    op.create_table(
        "known_failures",
        sa.Column("team", sa.String(length=20), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("resolution", sa.Text(), nullable=False),
        sa.Column("resolved_by", sa.Text(), nullable=False),
        sa.Column("resolved", sa.Float(precision=53), nullable=True),
        sa.Column("merged_into", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("team", "fingerprint", name=op.f("pk_known_failures")),
    )
    op.create_table(
        "known_failure_notes",
        sa.Column("id", ID, nullable=False),
        sa.Column("team", sa.String(length=20), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_known_failure_notes")),
    )
    op.create_index(
        op.f("ix_known_failure_notes_team_fingerprint"),
        "known_failure_notes",
        ["team", "fingerprint"],
    )
