"""Knows callers by name and password, from a file of bcrypt digests, so that no Identity service is needed."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable
from typing import Any

import webob.exc
from oslo_middleware import basic_auth
from oslo_middleware.exceptions import ConfigInvalid

from placement import errors, faults
from placement.conf import StartError
from placement.request import Environ, Service

LOG = logging.getLogger(__name__)

_CHALLENGE = 'Basic realm="placement", charset="UTF-8"'
_REMEMBERED = 1000
#: What tells who somebody is comes from here, and never from the client.
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
    """Lets in who is in ``[oslo_middleware]http_basic_auth_user_file``; the version document needs nobody.

    A changed file is in force at once.  Checking a digest is slow on purpose, so a password that was found right is
    remembered, as a digest that nobody outside this process can make, until the file changes.
    """

    def __init__(self, application: Any, service: Service) -> None:
        self.application = application
        self._file = service.conf.oslo_middleware.http_basic_auth_user_file
        self._roles = ",".join(service.conf.api.http_basic_roles)
        self._key = os.urandom(32)
        self._right: set[bytes] = set()
        _check(self._file)

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """The answer of the application to whoever it is; 401 for nobody."""
        for name in [name for name in environ if name.startswith(_IDENTITY)]:
            del environ[name]
        if environ["PATH_INFO"] in ("", "/"):
            return self.application(environ, start_response)
        try:
            user = self._user(environ)
        except OSError as error:
            LOG.error("The passwords cannot be read: %s", error)
            return faults.respond(PasswordsUnavailable(), environ, start_response)
        if user is None:
            return webob.exc.HTTPUnauthorized(headers={"WWW-Authenticate": _CHALLENGE})(environ, start_response)
        environ["HTTP_X_USER_ID"] = environ["HTTP_X_USER_NAME"] = environ["HTTP_X_PROJECT_ID"] = user
        environ["HTTP_X_ROLES"] = self._roles
        return self.application(environ, start_response)

    def _user(self, environ: Environ) -> str | None:
        """Whose name and password the request has; raises OSError if the file cannot be read."""
        try:
            user, password = basic_auth.parse_token(basic_auth.parse_header(environ))
            if user.startswith("#") or not user.isprintable():
                return None  # an entry that is commented out, or a name that would be several lines of the log
            seen = self._seen(user, password)
            if seen not in self._right:
                basic_auth.authenticate(self._file, user, password)
                self._remember(seen)
        except (webob.exc.HTTPClientError, ValueError):  # bcrypt takes no password of more than 72 bytes
            return None
        return user

    def _seen(self, user: str, password: bytes) -> bytes:
        with open(self._file, "rb") as opened:
            status = os.fstat(opened.fileno())
        file = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
        return hashlib.blake2b(f"{file} {len(user)} {user}".encode() + password, key=self._key).digest()

    def _remember(self, seen: bytes) -> None:
        if len(self._right) >= _REMEMBERED:
            self._right.clear()
        self._right.add(seen)


def _check(file: str) -> None:
    """Raises StartError if the file cannot be used."""
    prefix = f"[oslo_middleware]http_basic_auth_user_file: {file}"
    try:
        basic_auth.validate_auth_file(file)
    except webob.exc.HTTPBadRequest as error:
        raise StartError(f"{prefix}: {error.detail}") from None
    except (ConfigInvalid, UnicodeError):
        raise StartError(f"{prefix} cannot be read") from None
