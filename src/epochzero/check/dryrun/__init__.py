"""A job run dry: its own script with its own arguments, in a child process, its loops shortened.

`run.dry_run` starts the child (`process`), reads what it tells (`records`) and says what it means
(`findings`); `child` is what runs in the job's own Python.
"""
