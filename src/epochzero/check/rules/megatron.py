"""Shared by the rules about the options of Megatron-LM."""

from epochzero.check.rule import SourceLocation


def at_option(place: SourceLocation) -> SourceLocation:
    """Where the value of an option comes from; the command if that is not known."""
    return place if place.path else SourceLocation("<command>")
