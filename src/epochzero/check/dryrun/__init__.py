"""Dry run of a job: its own script and arguments, in a child process, with shortened loops.

`run.dry_run` starts the child (`process`), parses its output (`records`) and interprets it
(`findings`); `child` runs in the job's own Python.
"""
