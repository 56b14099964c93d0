"""A format string does not match its values."""

from epochzero.check.rule import Claim, Claims, JobView, Rule
from epochzero.check.rules.flakes import Flake, flakes, reading

_COUNT = "F507"
_SAID = {
    "F501": ("The format is not valid: {0}.", "ValueError: {0}"),
    "F506": (
        "The format has both named and unnamed placeholders.",
        "TypeError: format requires a mapping",
    ),
    "F509": ("%{0} is not a conversion.", "ValueError: unsupported format character '{0}'"),
    "F505": ("The format has a placeholder for {0}, but no such value is passed.", "KeyError"),
    "F502": (
        "The format has named placeholders, but a sequence is passed.",
        "TypeError: format requires a mapping",
    ),
    "F524": (
        "The format has a placeholder for {0}, but no such value is passed.",
        "IndexError or KeyError: the replacement is missing",
    ),
    "F525": (
        "The format mixes numbered and automatic placeholders.",
        "ValueError: cannot switch from automatic field numbering to manual field specification",
    ),
    "F521": ("The format is not valid: {0}.", "ValueError: {0}"),
}


def _check(view: JobView) -> Claims:
    for flake in flakes(view, (_COUNT, *_SAID)):
        if flake.code == _COUNT:
            yield _count(flake)
        else:
            message, consequence = (text.format(*flake.values) for text in _SAID[flake.code])
            yield flake.claim(message, consequence, RULE.fix)


def _count(flake: Flake) -> Claim:
    wanted, given = flake.values
    consequence = (
        "TypeError: not enough arguments for format string"
        if int(given) < int(wanted)
        else "TypeError: not all arguments converted during string formatting"
    )
    message = f"The number of placeholders ({wanted}) differs from the number of values ({given})."
    return flake.claim(message, consequence, RULE.fix)


RULE = Rule(
    category="type_mismatch",
    why="Python checks the number and types of the values only when the line runs. This line is "
    "often the last one of the run and only prints the metric.",
    fix="Pass as many values as the format has placeholders, or use an f-string.",
    source="Zhang et al., ICSE 2020, Table 1: Type Mismatch, 566 of 4,960 failures",
    check=_check,
    background=reading,
    examples="""
        loss = 0.5
        print('%d: %f' % (loss,))  # <-
        ----
        loss = 0.5
        print('{} {}'.format(loss))  # <-
        ----
        loss = 0.5
        print('%d%%: %f' % (1, loss))
        ----
        def line(*values):
            return '{} {}'.format(*values)
        line(1, 2)
    """,
)
