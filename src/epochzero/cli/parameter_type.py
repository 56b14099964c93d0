"""The base class of parameter types, which older releases of click do not declare as generic."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click import ParamType as ParamType
else:

    class ParamType(click.ParamType):
        """See `click.ParamType`."""

        def __class_getitem__(cls, _: type) -> type:
            return cls
