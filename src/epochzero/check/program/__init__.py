"""The program of a job, read as a whole without running it.

`interpreter` has `read_program`. It is not imported here: `epochzero.check.program.syntax` needs `model` alone, and the interpreter
needs `code`.
"""
