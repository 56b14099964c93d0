"""Tables for the report."""


def percent(value):
    return "" if value != value else "{:.1%}".format(value)


def header(columns):
    return "| |" + "|".join(str(c) for c in columns) + "|\n|---" * 1 + "|---" * len(columns) + "|\n"


def markdown(frame, render=percent):
    """A table of GitHub's kind."""
    shown = frame.applymap(render)
    lines = [header(frame.columns)]
    for name, row in shown.iterrows():
        lines.append("|" + "|".join([str(name), *row]) + "|\n")
    return "".join(lines)
