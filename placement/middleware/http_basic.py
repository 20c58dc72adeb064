"""HTTP Basic authentication against a file of bcrypt digests, without an Identity service."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement import errors
from placement.errors import StartError
from placement.http.failures import TooManyGuesses, Unauthenticated
from placement.http.service import Service
from placement.middleware.guess_limit import GuessLimit, address_of
from placement.middleware.passwords import BadFile, Passwords

LOG = logging.getLogger(__name__)

_CHALLENGE = 'Basic realm="placement", charset="UTF-8"'
#: Prefixes of the headers that identify the caller to inner layers; removed from the client's request.
_IDENTITY = tuple(
    f"HTTP_{name}"
    for name in (
        *("X_USER", "X_PROJECT", "X_TENANT", "X_DOMAIN", "X_ROLE", "X_SERVICE", "X_IS_ADMIN", "X_AUTH", "X_STORAGE"),
        *("X_IDENTITY", "OPENSTACK_SYSTEM_SCOPE"),
    )
)


class PasswordsUnavailable(errors.Unavailable):
    template = "No password can be checked at the moment."


class HttpBasic:
    """The strategy http_basic, which accepts the names and passwords of ``[oslo_middleware]http_basic_auth_user_file``.

    A remembered password is accepted immediately, even if its address has sent wrong passwords.  The guess limit bounds
    the checks of all other passwords, so that guesses do not slow down clients with the right password.
    """

    def __init__(self, application: WSGIApplication, service: Service) -> None:
        self._application = application
        self._roles = ",".join(service.conf.api.http_basic_roles)
        self._passwords = _passwords(service.conf.oslo_middleware.http_basic_auth_user_file)
        self._guess_limit = GuessLimit()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the application's response.

        Raises:
            Unauthenticated: The password is wrong or missing.
            TooManyGuesses: The password was not checked: its address has sent too many wrong passwords.
            PasswordsUnavailable: The password file cannot be read.
        """
        for name in [name for name in environ if name.startswith(_IDENTITY)]:
            del environ[name]
        try:
            user = self._user(environ)
        except (OSError, BadFile) as error:
            LOG.error("The passwords cannot be read: %s", error)
            raise PasswordsUnavailable() from None
        environ["HTTP_X_USER_ID"] = environ["HTTP_X_USER_NAME"] = environ["HTTP_X_PROJECT_ID"] = user
        environ["HTTP_X_ROLES"] = self._roles
        return self._application(environ, start_response)

    def _user(self, environ: WSGIEnvironment) -> str:
        """Return the authenticated name; failures as for ``__call__``, and OSError or BadFile."""
        user, password = _credentials(environ)
        if self._passwords.remembers(user, password):
            return user
        address = address_of(environ)
        if seconds := self._guess_limit.seconds_to_wait(address):
            raise TooManyGuesses(seconds)
        if not self._passwords.verify(user, password):
            self._guess_limit.count(address)
            LOG.info("Wrong name or password from %r", address)
            raise Unauthenticated(_CHALLENGE)
        return user


def _credentials(environ: WSGIEnvironment) -> tuple[str, bytes]:
    """Return name and password of the request, or raise Unauthenticated."""
    scheme, _, token = environ.pop("HTTP_AUTHORIZATION", "").strip().partition(" ")
    if scheme.lower() != "basic":
        raise Unauthenticated(_CHALLENGE)
    try:
        name, _, password = base64.b64decode(token.strip(), validate=True).partition(b":")
        return name.decode(), password
    except ValueError:
        raise Unauthenticated(_CHALLENGE) from None


def _passwords(file: str) -> Passwords:
    """Return the passwords of the file; raise StartError if it cannot be used."""
    prefix = f"[oslo_middleware]http_basic_auth_user_file: {file or 'the empty value'}"
    try:
        return Passwords(file)
    except OSError as error:
        raise StartError(f"{prefix} cannot be read: {error.strerror}") from None
    except BadFile as error:
        raise StartError(f"{prefix} {error}") from None
