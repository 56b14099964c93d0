"""What webhooks are to be told, so that a restart forgets none of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes the table, empty: of what failed before nobody is told."""
    op.create_table(
        "deliveries",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("rule_id", ID, nullable=False),
        sa.Column("team", sa.String(length=20), nullable=False),
        sa.Column("identity", sa.String(length=32), nullable=False),
        sa.Column("tried", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_deliveries_job_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["rule_id"], ["webhooks.id"], name=op.f("fk_deliveries_rule_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "attempt", "rule_id", name=op.f("pk_deliveries")),
    )
    op.create_index(op.f("ix_deliveries_due"), "deliveries", ["due"])
