"""Sign-in with an account of the organization, through its OpenID Connect provider.

Authorization code flow with PKCE, state and nonce (OpenID Connect Core 1.0, Section 3.1; RFC 7636; RFC 9700,
Section 2.1). Authlib implements it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth
from fastapi import Request, Response
from joserfc.errors import JoseError

from epochzero.web.provider import Membership, Provider, SignInError

_LOGGER = logging.getLogger("epochzero.web")
_PATIENCE_S = 10.0
_SIGNED = ("RS", "ES", "PS", "Ed")
"""Signatures with a public key. The provider's list may also have "none"."""
_PROBLEMS = (AuthlibBaseError, JoseError, httpx2.HTTPError, RuntimeError, ValueError, KeyError)


@dataclass(frozen=True, slots=True)
class Person:
    """A person whom the provider has identified.

    Attributes:
        subject: identifies them for all time, whatever they are called.
        name: of the person.
        members: their teams; not empty.
    """

    subject: str
    name: str
    members: list[Membership]


class Accounts:
    """The accounts of one provider. Its description and keys are fetched at the first sign-in."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._client = OAuth().register(
            "account",
            client_id=provider.client_id,
            client_secret=provider.client_secret,
            server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": provider.scope,
                "code_challenge_method": "S256",
                "timeout": _PATIENCE_S,
            },
        )

    async def to_provider(self, request: Request) -> Response:
        """Redirects to the provider.

        Raises:
            RefusedError: the provider does not respond as it should.
        """
        try:
            await self._describe()
            answer: Response = await self._client.authorize_redirect(
                request, self.provider.callback
            )
        except _PROBLEMS as error:
            raise self._away(error) from error
        return answer

    async def person(self, request: Request) -> Person:
        """The person with whom the provider redirected here.

        Raises:
            RefusedError: the request or the response is not valid, or the person has no team.
        """
        try:
            await self._describe()
            token = await self._client.authorize_access_token(request)
            claims: Mapping[str, Any] = token.get("userinfo") or {}
            if claims.get("sub") and not self.provider.memberships(claims):
                # Some providers report groups only here.
                more = await self._client.userinfo(token=token)
                if more.get("sub") == claims["sub"]:
                    claims = {**more, **claims}
        except _PROBLEMS as error:
            raise self._away(error) from error
        if not claims.get("sub"):
            raise SignInError(f"{self.provider.host} did not say who you are. Please try again.")
        name = self.provider.name(claims)
        members = self.provider.memberships(claims)
        if not members:
            raise SignInError(
                f"The account {name} is in no group that may use this server. Please ask its admin."
            )
        return Person(json.dumps([self.provider.issuer, claims["sub"]]), name, members)

    async def _describe(self) -> None:
        """Fetches the provider's description once, and checks it (OpenID Connect Discovery 1.0, Section 4.3)."""
        found = await self._client.load_server_metadata()
        if str(found.get("issuer")).rstrip("/") != self.provider.issuer.rstrip("/"):
            raise ValueError(f"the issuer is {found.get('issuer')!r}, not {self.provider.issuer!r}")
        algorithms = found.get("id_token_signing_alg_values_supported") or ["RS256"]
        found["id_token_signing_alg_values_supported"] = [
            name for name in algorithms if name.startswith(_SIGNED)
        ]

    def _away(self, error: Exception) -> SignInError:
        """The reason for the log, and what the person can do for the page."""
        reason = {"problem": f"sign-in with {self.provider.host}: {type(error).__name__}: {error}"}
        _LOGGER.warning(json.dumps(reason))
        return SignInError(
            f"The sign-in with {self.provider.host} failed. Please try again; the server's log has the reason."
        )
