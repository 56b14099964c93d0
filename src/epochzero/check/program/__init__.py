"""An abstract interpreter that reads the program of a job as a whole without running it.

`interpreter` has `read_program`. It is not imported here: `syntax` needs only `model`, and the interpreter
needs `syntax`.
"""
