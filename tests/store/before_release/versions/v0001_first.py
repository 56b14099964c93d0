"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "chunks",
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_chunks")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("command", JSON, nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("launcher", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("scheduler", JSON, nullable=False),
        sa.Column("world_size", sa.BigInteger(), nullable=True),
        sa.Column("gpus", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.Float(precision=53), nullable=False),
        sa.Column("ended", sa.Float(precision=53), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("gpu_hours", sa.Float(precision=53), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_category"), "jobs", ["category"], unique=False)
    op.create_index(op.f("ix_jobs_fingerprint"), "jobs", ["fingerprint"], unique=False)
    op.create_index(op.f("ix_jobs_started"), "jobs", ["started"], unique=False)
    op.create_index(op.f("ix_jobs_state"), "jobs", ["state"], unique=False)
    op.create_index(op.f("ix_jobs_user"), "jobs", ["user"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("id", ID, nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.Float(precision=53), nullable=False),
        sa.Column("ended", sa.Float(precision=53), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("gpu_hours", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_attempts_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_attempts_job_id_number")),
    )
    op.create_table(
        "ranks",
        sa.Column("id", ID, nullable=False),
        sa.Column("attempt_id", ID, nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=True),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("journal", sa.Text(), nullable=False),
        sa.Column("taken", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat", sa.Float(precision=53), nullable=False),
        sa.Column("started", sa.Float(precision=53), nullable=False),
        sa.Column("ended", sa.Float(precision=53), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("signal", sa.BigInteger(), nullable=True),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("commit", sa.Text(), nullable=False),
        sa.Column("snapshot", JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_ranks_attempt_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ranks")),
        sa.UniqueConstraint("journal", name=op.f("uq_ranks_journal")),
    )
    op.create_index(op.f("ix_ranks_attempt_id"), "ranks", ["attempt_id"], unique=False)
    op.create_index(op.f("ix_ranks_state"), "ranks", ["state"], unique=False)
    op.create_table(
        "decisions",
        sa.Column("rank_id", ID, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("after", sa.Float(precision=53), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("avoid", JSON, nullable=False),
        sa.Column("saved_gpu_hours", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["rank_id"], ["ranks.id"], name=op.f("fk_decisions_rank_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("rank_id", "sequence", name=op.f("pk_decisions")),
    )
    op.create_table(
        "events",
        sa.Column("rank_id", ID, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("elapsed", sa.Float(precision=53), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=True),
        sa.Column("details", JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["rank_id"], ["ranks.id"], name=op.f("fk_events_rank_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("rank_id", "sequence", name=op.f("pk_events")),
    )
    op.create_table(
        "failures",
        sa.Column("id", ID, nullable=False),
        sa.Column("rank_id", ID, nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Text(), nullable=False),
        sa.Column("root_cause", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("retry", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Float(precision=53), nullable=False),
        sa.Column("gpu_hours", sa.Float(precision=53), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("root_text", sa.Text(), nullable=False),
        sa.Column("root_rank", sa.BigInteger(), nullable=True),
        sa.Column("diagnosis", JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["rank_id"], ["ranks.id"], name=op.f("fk_failures_rank_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_failures")),
    )
    op.create_index(op.f("ix_failures_category"), "failures", ["category"], unique=False)
    op.create_index(op.f("ix_failures_fingerprint"), "failures", ["fingerprint"], unique=False)
    op.create_index(op.f("ix_failures_rank_id"), "failures", ["rank_id"], unique=False)
    op.create_table(
        "findings",
        sa.Column("id", ID, nullable=False),
        sa.Column("rank_id", ID, nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("finding", JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["rank_id"], ["ranks.id"], name=op.f("fk_findings_rank_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_findings")),
    )
    op.create_index(op.f("ix_findings_rank_id"), "findings", ["rank_id"], unique=False)
    op.create_index(op.f("ix_findings_rule"), "findings", ["rule"], unique=False)
    op.create_table(
        "notes",
        sa.Column("rank_id", ID, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["rank_id"], ["ranks.id"], name=op.f("fk_notes_rank_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("rank_id", "sequence", name=op.f("pk_notes")),
    )
    op.create_table(
        "outputs",
        sa.Column("id", ID, nullable=False),
        sa.Column("rank_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("paths", JSON, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("dropped", sa.BigInteger(), nullable=False),
        sa.Column("stored", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["rank_id"], ["ranks.id"], name=op.f("fk_outputs_rank_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outputs")),
        sa.UniqueConstraint("rank_id", "name", name=op.f("uq_outputs_rank_id_name")),
    )
    op.create_table(
        "progress",
        sa.Column("rank_id", ID, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("elapsed", sa.Float(precision=53), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("steps", sa.BigInteger(), nullable=True),
        sa.Column("epoch", sa.Float(precision=53), nullable=True),
        sa.Column("epochs", sa.Float(precision=53), nullable=True),
        sa.Column("checkpoint", sa.Text(), nullable=False),
        sa.Column("loss", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["rank_id"], ["ranks.id"], name=op.f("fk_progress_rank_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("rank_id", "sequence", name=op.f("pk_progress")),
    )
    op.create_table(
        "rankings",
        sa.Column("id", ID, nullable=False),
        sa.Column("rank_id", ID, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=False),
        sa.Column("item", JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["rank_id"], ["ranks.id"], name=op.f("fk_rankings_rank_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rankings")),
    )
    op.create_index(op.f("ix_rankings_rank_id"), "rankings", ["rank_id"], unique=False)
    op.create_table(
        "samples",
        sa.Column("rank_id", ID, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("elapsed", sa.Float(precision=53), nullable=False),
        sa.Column("processes", sa.BigInteger(), nullable=False),
        sa.Column("cpu_percent", sa.Float(precision=53), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("memory_available_bytes", sa.BigInteger(), nullable=False),
        sa.Column("read_bytes", sa.BigInteger(), nullable=False),
        sa.Column("written_bytes", sa.BigInteger(), nullable=False),
        sa.Column("disk_free_bytes", sa.BigInteger(), nullable=False),
        sa.Column("received_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sent_bytes", sa.BigInteger(), nullable=False),
        sa.Column("gpu_percent", sa.Float(precision=53), nullable=True),
        sa.Column("gpu_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("gpus", JSON, nullable=True),
        sa.ForeignKeyConstraint(
            ["rank_id"], ["ranks.id"], name=op.f("fk_samples_rank_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("rank_id", "sequence", name=op.f("pk_samples")),
    )
    op.create_table(
        "output_chunks",
        sa.Column("output_id", ID, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["digest"], ["chunks.digest"], name=op.f("fk_output_chunks_digest")
        ),
        sa.ForeignKeyConstraint(
            ["output_id"],
            ["outputs.id"],
            name=op.f("fk_output_chunks_output_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("output_id", "position", name=op.f("pk_output_chunks")),
    )
    op.create_index(op.f("ix_output_chunks_digest"), "output_chunks", ["digest"], unique=False)
