"""The steps by which the tables of an older store become those of today, run by alembic."""
