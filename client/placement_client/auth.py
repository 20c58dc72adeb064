"""Credentials: a token, a name with a password, or a session of keystoneauth."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Iterator
from typing import Any, Protocol

import httpx

from placement_client.errors import NoToken

#: A name and a password, for a service with ``auth_strategy = http_basic``.
Basic = httpx.BasicAuth


class Token(httpx.Auth):
    """A token of the Identity service, or one for ``noauth2`` such as ``"admin"`` with ``make serve``."""

    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send the token."""
        request.headers["X-Auth-Token"] = self._token
        yield request


class Session(Protocol):
    """The methods of ``keystoneauth1.session.Session`` that this package uses."""

    def get_auth_headers(self, auth: Any = ..., **kwargs: Any) -> Any:
        """Return the headers with a valid token."""

    def get_endpoint(self, auth: Any = ..., **kwargs: Any) -> Any:
        """Return the URL of a service in the catalog."""

    def invalidate(self, auth: Any = ...) -> bool:
        """Discard the token; return whether another one can be requested."""


class Keystone(httpx.Auth):
    """Tokens from a session of keystoneauth, and the URL of the service from its catalog.

    A token that the service rejects is replaced, once per request.

    Args:
        session: A session of keystoneauth1, which the extra ``keystone`` installs; ``connection.session`` of
            openstacksdk is one.
        interface: The interface whose URL in the catalog to use.
        region_name: The region; None if the cloud has only one.
    """

    def __init__(self, session: Session, *, interface: str = "public", region_name: str | None = None) -> None:
        self._session = session
        self._selection = {"service_type": "placement", "interface": interface, "region_name": region_name}

    def endpoint(self) -> str:
        """Return the URL of the service, or raise NoToken."""
        with _translate_errors("catalog"):
            url = self._session.get_endpoint(**self._selection)
        if not url:
            raise NoToken(f"The catalog does not contain the service: {self._selection}")
        return str(url)

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send the token of the session, and retry with a new one if it is rejected."""
        self._sign(request)
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED and self._session.invalidate():
            self._sign(request)
            yield request

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Authenticate like ``sync_auth_flow``, but call the blocking session in a thread."""
        await asyncio.to_thread(self._sign, request)
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED and await asyncio.to_thread(self._session.invalidate):
            await asyncio.to_thread(self._sign, request)
            yield request

    def _sign(self, request: httpx.Request) -> None:
        with _translate_errors("token"):
            headers = self._session.get_auth_headers()
        request.headers.update(headers or {})


@contextlib.contextmanager
def _translate_errors(requested: str) -> Iterator[None]:
    """Raise NoToken for an exception of keystoneauth; any other exception is a mistake of the caller."""
    try:
        yield
    except Exception as error:
        if not _is_named(error, "ClientException"):
            raise
        raise NoToken(f"The Identity service returned no {requested}: {error}", _may_pass(error)) from error


def _may_pass(error: BaseException | None) -> bool:
    """Whether a retry may succeed: the Identity service was not reached, or failed."""
    if status := getattr(error, "http_status", None):
        return bool(status >= 500 or status == 429)
    if error is not None and _is_named(error, "DiscoveryFailure"):  # its context is the reason
        return _may_pass(error.__context__)
    return _is_named(error, "RetriableConnectionFailure")


def _is_named(error: BaseException | None, name: str) -> bool:
    """Whether an error is an instance of a keystoneauth class, compared by name: keystoneauth is not a dependency."""
    return any(base.__name__ == name for base in type(error).__mro__)
