"""Programs that run with the job's Python, which need not know this package.

Each reads a note as JSON from standard input, and says on the last line of its output where it has put it.
It ends with 3 when its tool is not installed.
"""
