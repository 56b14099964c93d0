"""Ranks: 3. Rank 2 writes its metrics to a database whose lock a killed notebook still holds."""

import sqlite3
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 2:
    file = Path(tempfile.mkdtemp()) / "metrics.db"
    notebook = sqlite3.connect(file, isolation_level=None)
    notebook.execute("create table metrics (step, loss)")
    database = sqlite3.connect(file, timeout=3600)
for step in range(100):
    dist.all_reduce(torch.ones(4))
    if rank == 0:
        print(f"step {step}", flush=True)
    if rank == 2:
        if step == 30:
            notebook.execute("begin exclusive")
        database.execute("insert into metrics values (?, ?)", (step, 0.1))  # <- waits
        database.commit()
