"""``epochzero serve``: the failures of a team in one place."""

from __future__ import annotations

import logging
import os
import sys
import time
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path

import click

from epochzero.cli.group import CommandGroup
from epochzero.cli.layout import counted
from epochzero.cli.listener import listen
from epochzero.cli.output import folder_option
from epochzero.cli.store_options import store_address, store_option
from epochzero.errors import InputError
from epochzero.run.records.home import homes

_NEEDED = ("fastapi", "jinja2", "prometheus_client", "python_multipart", "sqlalchemy", "uvicorn")
_FOR_ACCOUNTS = ("authlib", "httpx2", "itsdangerous")
_file = click.Path(path_type=Path, dir_okay=False)


def require_service() -> None:
    """Checks that the packages of the extra ``serve`` are installed.

    Raises:
        InputError: one is missing.
    """
    _require(_NEEDED, "serve")


def _require(names: tuple[str, ...], extra: str) -> None:
    if missing := [name for name in names if find_spec(name) is None]:
        raise InputError(
            f"`epochzero serve` requires {', '.join(missing)}: pip install 'epochzero[{extra}]'"
        )


@click.group(cls=CommandGroup, name="serve", invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8642, show_default=True, type=click.IntRange(1, 65535), help="TCP port."
)
@store_option
@folder_option(
    "--folder",
    help="Directory for incoming data until it is in the store.  [default: $EPOCHZERO_HOME/serve]",
)
@folder_option(
    "--watch-folder",
    "watched",
    help="Diagnose and store each log that appears in this directory.",
    exists=True,
)
@click.option(
    "--authentication",
    is_flag=True,
    help="Also require tokens on loopback addresses, for example behind a proxy.",
)
@click.option("--certificate", metavar="FILE", type=_file, help="Certificate chain for HTTPS.")
@click.option("--key", metavar="FILE", type=_file, help="Private key of the certificate.")
@click.option("--behind-https", is_flag=True, help="Expect a reverse proxy that terminates HTTPS.")
@click.option(
    "--private-webhooks", is_flag=True, help="Allow webhooks to private network addresses."
)
@click.option(
    "--url",
    metavar="URL",
    default="",
    help="Address of this server as browsers see it, for links in notifications.  [default: the URL of --sign-in]",
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    metavar="ADDRESS",
    multiple=True,
    help="Take client addresses from X-Forwarded-For of this proxy or network; repeatable.",
)
@click.option(
    "--log-days",
    metavar="DAYS",
    type=click.FloatRange(min=1),
    help="Delete logs and samples of jobs that ended more than DAYS days ago. Jobs and diagnoses remain.",
)
@click.option(
    "--sign-in",
    metavar="FILE",
    type=_file,
    help="Sign in with accounts of an OpenID Connect provider; FILE maps groups to teams.",
)
@click.pass_context
def command(
    context: click.Context,
    host: str,
    port: int,
    store: str | None,
    folder: Path | None,
    watched: Path | None,
    authentication: bool,
    certificate: Path | None,
    key: Path | None,
    behind_https: bool,
    private_webhooks: bool,
    url: str,
    trusted_proxies: tuple[str, ...],
    log_days: float | None,
    sign_in: Path | None,
) -> None:
    """Run a team server that collects failures and serves a web UI.

    Without a team, the server accepts only local requests and requires no token. Once a team exists, each request
    requires a token of that team.

    \b
    epochzero serve
    epochzero serve team vision
    epochzero serve token vision ann --role admin
    epochzero serve --host 0.0.0.0 --certificate chain.pem --key key.pem
    """
    context.obj = address = store_address(store, _home())
    if context.invoked_subcommand is not None:
        return
    require_service()
    from epochzero.store.database import open_database
    from epochzero.store.teams import teams
    from epochzero.web.provider import read_provider
    from epochzero.web.server import run
    from epochzero.web.settings import LOOPBACK, Settings

    if sign_in is not None:
        _require(_FOR_ACCOUNTS, "accounts")
    provider = None if sign_in is None else read_provider(sign_in)

    database = open_database(address)
    known = teams(database)
    database.close()
    settings = Settings(
        address,
        folder or _home() / "serve",
        authentication=authentication or host not in LOOPBACK or bool(known or provider),
        secure=behind_https or certificate is not None,
        private_webhooks=private_webhooks,
        trusted_proxies=tuple(map(_network, trusted_proxies)),
        watched=watched,
        log_days=log_days,
        provider=provider,
        url=url or (provider.url if provider else ""),
    )
    if settings.authentication and not known:
        click.echo("epochzero: no team has a token yet: epochzero serve team NAME", err=True)
    if host not in LOOPBACK and not settings.secure:
        click.echo("epochzero: without HTTPS, tokens can be read on the network", err=True)
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    logging.getLogger("epochzero.web").setLevel(logging.INFO)
    listener = listen(host, port, "https" if certificate else "http")
    # OpenBLAS of the workers allocates memory for each core: on a large machine, more than a log may use.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run(settings, listener, certificate=certificate, key=key)


@command.command(name="team")
@click.argument("name")
@click.pass_obj
def team(address: str, name: str) -> None:
    """Create a team. Teams cannot see each other's jobs."""
    from epochzero.store.database import open_database
    from epochzero.store.teams import add_team

    add_team(open_database(address), name)
    click.echo(f"next: epochzero serve token {name} WHO --role admin", err=True)


@command.command(name="token")
@click.argument("team", required=False)
@click.argument("name", required=False)
@click.option(
    "--role",
    type=click.Choice(["reader", "writer", "admin", "operator"]),
    default="writer",
    show_default=True,
    help="reader: read; writer: also send jobs; admin: also manage tokens.",
)
@click.option(
    "--days", type=click.FloatRange(min=0, min_open=True), help="Days until the token expires."
)
@click.option("--revoke", metavar="NUMBER", type=int, help="Revoke the token with this number.")
@click.pass_obj
def token(
    address: str,
    team: str | None,
    name: str | None,
    role: str,
    days: float | None,
    revoke: int | None,
) -> None:
    """Create a token of TEAM for NAME and print it once. Without NAME, list the tokens.

    \b
    epochzero serve token vision cluster7 > token
    epochzero serve token vision
    epochzero serve token --revoke 3
    """
    from epochzero.store.audit import note
    from epochzero.store.database import open_database
    from epochzero.store.teams import ROLES, add_token, revoke_token, tokens

    database = open_database(address)
    if revoke is not None:
        revoke_token(database, revoke)
        note(database, team or "", "command line", "token revoked", str(revoke))
    elif team and name:
        made = add_token(database, team, name, ROLES[ROLES.index(role)], days=days)
        note(database, team, "command line", "token created", f"{name} ({role})")
        click.echo(made)
    else:
        for token in tokens(database, team):
            is_over = token.expires is not None and token.expires < time.time()
            state = "revoked" if token.revoked else "expired" if is_over else "valid"
            click.echo(
                f"{token.id:>6}  {token.team:<20}  {token.role:<8}  {state:<7}  {token.name}"
            )


@command.command(name="backup")
@click.argument("file", type=_file)
@click.pass_obj
def backup(address: str, file: Path) -> None:
    """Back up the store to FILE while the server runs."""
    from epochzero.store.backup import back_up
    from epochzero.store.database import open_database

    rows = back_up(open_database(address), file)
    click.echo(f"{file}: {counted(rows, 'row')}", err=True)


@command.command(name="restore")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.pass_obj
def restore(address: str, file: Path) -> None:
    """Restore a backup from FILE into an empty store."""
    from epochzero.store.backup import restore as fill
    from epochzero.store.database import open_database

    rows = fill(open_database(address), file)
    click.echo(f"{counted(rows, 'row')} restored", err=True)


def _network(text: str) -> str:
    """An address or network as written, if it is one."""
    try:
        return str(ip_network(text))
    except ValueError as error:
        raise InputError(
            f"--trusted-proxy {text} is not an IP address or network such as 10.0.0.0/8 ({error})"
        ) from error


def _home() -> Path:
    home = homes(os.environ)[0]
    home.mkdir(parents=True, exist_ok=True)
    return home
