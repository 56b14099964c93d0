"""The error responses of the API, as OpenAPI documents them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from fastapi import HTTPException
from pydantic import BaseModel

from epochzero.errors import InputError
from epochzero.store.database import StoreError


class Problem(BaseModel):
    """An error: a sentence, or the list of invalid parameters, or a sentence with values."""

    detail: str | list[dict[str, Any]] | dict[str, Any]


_DESCRIPTIONS = {
    400: "The request is not valid HTTP, or its body is not valid JSON",
    401: "No valid token",
    403: "The role of the token does not allow this, or the request comes from another site",
    405: "The path does not support this method; Allow lists the supported ones",
    408: "The request body did not arrive in time",
    413: "The request is too large",
    415: "Unsupported compression",
    421: "Not a host name of this service",
    422: "A parameter or the body is not valid",
    429: "Too many requests; Retry-After gives the delay",
    503: "The database does not respond; Retry-After gives the delay",
    507: "The disk of the service is full; Retry-After gives the delay",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text} for status, text in _DESCRIPTIONS.items()
}
"""The responses that any request may receive."""


def problem(status: HTTPStatus | int, text: str) -> dict[int | str, dict[str, Any]]:
    """A further error response of one path."""
    return {int(status): {"model": Problem, "description": text}}


@contextmanager
def or_404(text: str = "") -> Iterator[None]:
    """Responds 404 if an object does not exist in the team, with a text or that of the error.

    Raises:
        HTTPException: 404.
    """
    try:
        yield
    except StoreError:
        raise
    except InputError as error:
        raise HTTPException(404, text or str(error)) from error
