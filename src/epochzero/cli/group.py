"""A command group that suggests the nearest name, and shows the help of a command that lacks its arguments."""

from __future__ import annotations

import re

import click

from epochzero.errors import suggestion


class CommandGroup(click.Group):
    """A `click.Group` that suggests the nearest name for an unknown command.

    A command that requires an argument prints its help, with its examples, if it gets none.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name.

        Raises:
            click.UsageError: there is none.
        """
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            hint = suggestion(name, names, f"there are {', '.join(names)}")
            raise click.UsageError(f"no command {name!r}; {hint}", ctx)
        found, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            command.no_args_is_help |= any(
                isinstance(parameter, click.Argument)
                and parameter.required
                and not parameter.envvar
                for parameter in command.params
            )
        return found, command, rest

    def invoke(self, ctx: click.Context) -> object:
        """Suggest the nearest choice for an unknown value of an option.

        Raises:
            click.BadParameter: a value is invalid.
        """
        try:
            return super().invoke(ctx)
        except click.BadParameter as error:
            wrong = re.fullmatch("('(.*)' is not one of .*)\\.", error.message)
            if wrong and error.param and isinstance(error.param.type, click.Choice):
                hint = suggestion(wrong[2], map(str, error.param.type.choices), "")
                text = f"{wrong[1]}; {hint}" if hint else error.message
                raise click.BadParameter(text, error.ctx, error.param) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with the whole first sentence of each; click cuts it to fit one line."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(1000)) for name, command in commands if command]
            )
