import sys
from ast import literal_eval

for argument in sys.argv[1:]:
    if "=" not in argument:
        exec(open(argument).read())
    else:
        name, value = argument.removeprefix("--").split("=")
        try:
            value = literal_eval(value)
        except (SyntaxError, ValueError):
            pass
        globals()[name] = value
