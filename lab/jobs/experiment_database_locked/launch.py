"""Another job writes the group's experiment database for long (NEIGHBOR=writing) or has finished."""
import os
import sqlite3
import subprocess
import sys

database = sqlite3.connect("experiments.db", isolation_level=None)
database.execute("create table runs (id integer primary key, name text, loss real)")
if os.environ["NEIGHBOR"] == "writing":
    database.execute("begin exclusive")
    database.execute("insert into runs (name, loss) values ('sweep-17', 0.5)")
sys.exit(subprocess.call([sys.executable, "train.py", "--database", "experiments.db"]))
