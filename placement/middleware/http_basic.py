"""Knows callers by name and password, from a file of bcrypt digests, so that no Identity service is needed."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from placement import errors
from placement.errors import StartError
from placement.http.faults import TooManyGuesses, Unauthenticated
from placement.http.service import Service
from placement.middleware.brake import Brake, address_of
from placement.middleware.passwords import BadFile, Passwords
from placement.middleware.refusal import refuse

LOG = logging.getLogger(__name__)

_CHALLENGE = 'Basic realm="placement", charset="UTF-8"'
#: What tells who sends a request comes from here, and never from the client.
_IDENTITY = tuple(
    f"HTTP_{name}"
    for name in (
        *("X_USER", "X_PROJECT", "X_TENANT", "X_DOMAIN", "X_ROLE", "X_SERVICE", "X_IS_ADMIN", "X_AUTH", "X_STORAGE"),
        *("X_IDENTITY", "OPENSTACK_SYSTEM_SCOPE"),
    )
)


class PasswordsUnavailable(errors.Unavailable):
    says = "No password can be checked at the moment."


class HttpBasic:
    """Lets in the names of ``[oslo_middleware]http_basic_auth_user_file``; the version document needs no name.

    A password that is remembered is let in at once, also where its address has sent wrong ones.  Others are looked at
    as often as the brake allows: so guesses take no time from those who know their password.
    """

    def __init__(self, application: Any, service: Service) -> None:
        self.application = application
        self._roles = ",".join(service.conf.api.http_basic_roles)
        self._passwords = _passwords(service.conf.oslo_middleware.http_basic_auth_user_file)
        self._brake = Brake()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The answer of the application; 401 for wrong credentials, 429 for too many of them."""
        for name in [name for name in environ if name.startswith(_IDENTITY)]:
            del environ[name]
        if environ["PATH_INFO"] in ("", "/"):
            return self.application(environ, start_response)
        try:
            user = self._user(environ)
        except (OSError, BadFile) as error:
            LOG.error("The passwords cannot be read: %s", error)
            return refuse(PasswordsUnavailable(), environ, start_response)
        except errors.Failure as failure:
            return refuse(failure, environ, start_response)
        environ["HTTP_X_USER_ID"] = environ["HTTP_X_USER_NAME"] = environ["HTTP_X_PROJECT_ID"] = user
        environ["HTTP_X_ROLES"] = self._roles
        return self.application(environ, start_response)

    def _user(self, environ: WSGIEnvironment) -> str:
        """The name whose password the request has; raises Unauthenticated and TooManyGuesses, OSError and BadFile."""
        user, password = _credentials(environ)
        if self._passwords.remembers(user, password):
            return user
        address = address_of(environ)
        if seconds := self._brake.wait(address):
            raise TooManyGuesses(seconds)
        if not self._passwords.are_right(user, password):
            self._brake.failed(address)
            LOG.info("The name or the password that %r sent is wrong", address)
            raise Unauthenticated(_CHALLENGE)
        return user


def _credentials(environ: WSGIEnvironment) -> tuple[str, bytes]:
    """The name and the password that the request has; raises Unauthenticated."""
    scheme, _, token = environ.pop("HTTP_AUTHORIZATION", "").strip().partition(" ")
    if scheme.lower() != "basic":
        raise Unauthenticated(_CHALLENGE)
    try:
        name, _, password = base64.b64decode(token.strip(), validate=True).partition(b":")
        return name.decode(), password
    except ValueError:
        raise Unauthenticated(_CHALLENGE) from None


def _passwords(file: str) -> Passwords:
    """The passwords of the file; raises StartError if it cannot be used."""
    prefix = f"[oslo_middleware]http_basic_auth_user_file: {file or 'the empty value'}"
    try:
        return Passwords(file)
    except OSError as error:
        raise StartError(f"{prefix} cannot be read: {error.strerror}") from None
    except BadFile as error:
        raise StartError(f"{prefix} {error}") from None
