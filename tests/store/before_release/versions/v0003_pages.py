"""What the pages of a service ask of many jobs: in the row of a job, with an index for each question."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

OF_LAST = """
    SELECT {columns} FROM attempts a JOIN ranks r ON r.attempt_id = a.id
    JOIN {table} f ON f.rank_id = r.id WHERE a.job_id = jobs.id AND a.number =
    (SELECT max(b.number) FROM attempts b WHERE b.job_id = jobs.id)
"""


def upgrade() -> None:
    """Adds the columns, fills them of what is there, and makes the indexes."""
    op.add_column("jobs", sa.Column("title", sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "jobs",
        sa.Column("wasted_gpu_hours", sa.Float(precision=53), nullable=False, server_default="0"),
    )
    op.add_column("jobs", sa.Column("caught", sa.BigInteger(), nullable=False, server_default="0"))
    title = OF_LAST.format(columns="f.title", table="failures") + "ORDER BY r.ended, f.id LIMIT 1"
    caught = OF_LAST.format(columns="1", table="findings")
    op.execute(
        f"UPDATE jobs SET title = coalesce(({title}), ''), caught = CASE WHEN EXISTS ({caught}"
        " AND f.severity = 'error' AND f.category = jobs.category) THEN 1 ELSE 0 END, "
        "wasted_gpu_hours = coalesce((SELECT sum(a.gpu_hours) FROM attempts a "
        "WHERE a.job_id = jobs.id AND a.number > 1 AND a.state = 'failed'), 0)"
    )
    counted = ("state", "category", "fingerprint", "gpu_hours", "wasted_gpu_hours", "caught")
    op.create_index("ix_jobs_counts", "jobs", ["team", "started", *counted])
    op.create_index("ix_jobs_newest", "jobs", ["team", "started", "id", "name"])
    op.create_index("ix_jobs_costliest", "jobs", ["team", "gpu_hours", "id"])
    for name in ("state", "category", "user", "host", "target"):
        op.create_index(f"ix_jobs_of_{name}", "jobs", ["team", name, "started", "id"])
    columns = ["team", "fingerprint", "started", "gpu_hours"]
    op.create_index("ix_jobs_of_fingerprint", "jobs", columns)
