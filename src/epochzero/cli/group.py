"""A command group that suggests the nearest name, and shows the help of a command that lacks its arguments."""

from __future__ import annotations

import click


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
            from difflib import get_close_matches

            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with the whole first sentence of each; click cuts it to fit one line."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(1000)) for name, command in commands if command]
            )
