"""Settings of the sign-in with an account: an OpenID Connect provider, and what its groups may do here."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from epochzero.errors import InputError
from epochzero.store.teams import ROLES, Role

CALLBACK = "/login/account/callback"
EVERYONE = "*"
_TEXTS = ("issuer", "client_id", "client_secret_file", "url")
_OPTIONAL = ("groups_claim", "name_claim", "scope")
_LONGEST_NAME = 100


class SignInError(Exception):
    """Nobody can sign in, or not this person; the message says why."""


@dataclass(frozen=True, slots=True)
class Membership:
    """What the members of a group may do.

    Attributes:
        group: its name at the provider; `EVERYONE` for each account.
        team: whose jobs they see.
        role: their permissions.
    """

    group: str
    team: str
    role: Role


@dataclass(frozen=True, slots=True)
class Provider:
    """How to ask an OpenID Connect provider, and what its groups mean.

    Attributes:
        issuer: its address, below which ``.well-known/openid-configuration`` is found.
        client_id, client_secret: of this service, as registered with the provider.
        url: the address of this service, as browsers see it.
        members: in the order of the file; the first that applies to a team counts.
        groups_claim: where the groups are; dots separate levels, as in ``realm_access.roles``.
        name_claim: what a person is called in comments and in the audit log.
        scope: what is requested of the provider.
    """

    issuer: str
    client_id: str
    client_secret: str
    url: str
    members: tuple[Membership, ...]
    groups_claim: str = "groups"
    name_claim: str = "email"
    scope: str = "openid email profile"

    @property
    def callback(self) -> str:
        """The address to register with the provider as redirect URI."""
        return self.url.rstrip("/") + CALLBACK

    @property
    def host(self) -> str:
        """The provider's host name, for people."""
        return urlsplit(self.issuer).hostname or self.issuer

    def memberships(self, claims: Mapping[str, Any]) -> list[Membership]:
        """The teams of a person, each once, with the role of the first group that gives one."""
        groups = {EVERYONE, *_texts(_claim(claims, self.groups_claim))}
        found: dict[str, Membership] = {}
        for member in self.members:
            if member.group in groups:
                found.setdefault(member.team, member)
        return list(found.values())

    def name(self, claims: Mapping[str, Any]) -> str:
        """What a person is called. An email address counts unless the provider says that it is not verified."""
        is_open = self.name_claim == "email" and claims.get("email_verified") is False
        candidates = (*(() if is_open else (self.name_claim,)), "preferred_username", "sub")
        names = (_claim(claims, name) for name in candidates)
        return next(str(name) for name in names if name)[:_LONGEST_NAME]


def read_provider(path: Path) -> Provider:
    """Reads the settings of ``--sign-in FILE``.

    Raises:
        InputError: the file cannot be read, or a setting is missing, unknown or not valid.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    if unknown := sorted(set(data) - {*_TEXTS, *_OPTIONAL, "member"}):
        known = ", ".join((*_TEXTS, *_OPTIONAL, "[[member]]"))
        raise InputError(f"{path}: unknown setting {unknown[0]!r}; valid settings are {known}")
    for name in _TEXTS:
        if not isinstance(data.get(name), str) or not data[name].strip():
            raise InputError(f"{path}: {name} is missing; set it to a string")
    for name in ("issuer", "url"):
        _check_address(path, name, data[name])
    optional = {name: data[name] for name in _OPTIONAL if name in data}
    if wrong := [name for name, value in optional.items() if not isinstance(value, str)]:
        raise InputError(f"{path}: {wrong[0]} must be a string")
    secret = _secret(path, path.parent / data["client_secret_file"])
    members = _members(path, data.get("member"))
    return Provider(data["issuer"], data["client_id"], secret, data["url"], members, **optional)


def _check_address(path: Path, name: str, text: str) -> None:
    """HTTPS only, because a token in an unencrypted response could be replaced; this machine is exempt."""
    try:
        parts = urlsplit(text)
        local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    except ValueError as error:
        raise InputError(f"{path}: {name} = {text!r} is not an address: {error}") from error
    if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and local)):
        raise InputError(f"{path}: {name} = {text!r} must be an https:// address")


def _secret(path: Path, file: Path) -> str:
    try:
        secret = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: client_secret_file {file} cannot be read: {reason}") from error
    if not secret:
        raise InputError(f"{path}: client_secret_file {file} is empty")
    return secret


def _members(path: Path, found: object) -> tuple[Membership, ...]:
    example = '[[member]] with group = "ml", team = "vision", role = "writer"'
    if not isinstance(found, list) or not found:
        raise InputError(f"{path}: no group may sign in; add {example}")
    members = []
    for member in found:
        if not isinstance(member, dict) or set(member) != {"group", "team", "role"}:
            raise InputError(
                f"{path}: [[member]] needs exactly group, team and role, as in {example}"
            )
        if not all(isinstance(value, str) for value in member.values()):
            raise InputError(f"{path}: [[member]]: group, team and role must be strings")
        if member["role"] not in ROLES:
            raise InputError(f"{path}: role = {member['role']!r}; the roles are {', '.join(ROLES)}")
        members.append(Membership(**member))
    return tuple(members)


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """The value of a claim; a name with dots may also be that of one claim."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
