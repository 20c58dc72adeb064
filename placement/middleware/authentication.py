"""Authenticates requests, and leaves the identity of the caller in the environ (docs: api-authentication)."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_context.context import RequestContext

from placement import package
from placement.errors import StartError
from placement.http.api import Layer
from placement.http.environ import API, CONTEXT, GLOBAL_REQUEST_ID, REQUEST_ID
from placement.http.failures import Unauthenticated, respond
from placement.http.service import Service
from placement.middleware import own_origin
from placement.middleware.http_basic import HttpBasic

_KEYSTONE = "[api]auth_strategy is keystone:"
#: The user that noauth2 gives the role ``admin``.
_ADMINISTRATOR = "admin"
#: What keystoneauth sends with the auth type "none".
_ANONYMOUS = "notused"


class Authentication:
    """Has the strategy of ``[api]auth_strategy`` authenticate requests, but for the open paths of an API."""

    def __init__(self, application: WSGIApplication, service: Service, strategy: Layer | None = None) -> None:
        """Raises StartError."""
        self._application = application
        strategy = strategy or _STRATEGIES[service.conf.api.auth_strategy]
        self._authenticated = strategy(Identity(application), service)
        self._strategy_is_noauth2 = strategy is Noauth2

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application; 401 if the request has no valid credentials and needs them."""
        if self._path(environ) in environ[API].open_paths:
            environ[CONTEXT] = _anonymous(environ)
            return self._application(environ, start_response)
        return self._authenticated(environ, start_response)

    def _path(self, environ: WSGIEnvironment) -> str:
        """Return the path; the empty one is ``/``, but OpenStack Placement requires a token for it with noauth2."""
        path: str = environ["PATH_INFO"]
        if not path and not (self._strategy_is_noauth2 and not environ[API].prefix):
            return "/"
        return path


class Identity:
    """Makes a context from the identity headers, by which the policy decides and which log lines show."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application; 401 if the request has no user."""
        # No layer further in needs the token.  What the context does not have cannot get into a log.
        context = RequestContext.from_environ(environ, auth_token=None, **_ids(environ), overwrite=True)
        if context.user_id is None or not _printable(context):
            _anonymous(environ)  # the newest context is that of the log
            return respond(Unauthenticated(), environ, start_response)
        environ[CONTEXT] = context
        return self._application(environ, start_response)


def _anonymous(environ: WSGIEnvironment) -> RequestContext:
    """Return a context without a user: identity headers of a request that was not authenticated are the client's."""
    return RequestContext(**_ids(environ), overwrite=True)


def _ids(environ: WSGIEnvironment) -> dict[str, Any]:
    return {"request_id": environ[REQUEST_ID], "global_request_id": environ[GLOBAL_REQUEST_ID]}


def _printable(context: RequestContext) -> bool:
    """Return whether the ids, which stand in each line of the log, cannot end the line."""
    ids = (context.user_id, context.project_id, context.domain_id, context.user_domain_id, context.project_domain_id)
    return all(each.isprintable() for each in ids if each)


class Noauth2:
    """Believes the token, ``<user>[:<project>]``; the user ``admin`` is an administrator.  For tests."""

    def __init__(self, application: WSGIApplication, _service: Service) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application to the user that the token names; 401 without a token."""
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if environ[API].anonymous_is_admin and (token == _ANONYMOUS or (token is None and not _is_of_a_page(environ))):
            token = _ADMINISTRATOR
        if token is None:
            return respond(Unauthenticated(), environ, start_response)
        user_id, _, project_id = token.partition(":")
        environ["HTTP_X_USER_ID"] = user_id
        environ.setdefault("HTTP_X_ROLES", "admin" if user_id == _ADMINISTRATOR else "")
        if environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
            environ.pop("HTTP_X_PROJECT_ID", None)
        else:
            environ.setdefault("HTTP_X_PROJECT_ID", project_id or user_id)
        return self._application(environ, start_response)


def _is_of_a_page(environ: WSGIEnvironment) -> bool:
    """Return whether a page of another origin may have sent the request: browsers let any page POST without a token."""
    return "HTTP_ORIGIN" in environ and not (environ[API].has_pages and own_origin.is_own(environ))


def _keystone(application: WSGIApplication, service: Service) -> WSGIApplication:
    try:
        from placement.middleware.keystone import Keystone
    except ImportError:
        raise StartError(f"{_KEYSTONE} keystonemiddleware is missing: {package.install('keystone')}") from None
    return Keystone(application, service)


_STRATEGIES: dict[str, Layer] = {"noauth2": Noauth2, "keystone": _keystone, "http_basic": HttpBasic}

#: The layer that authenticates by noauth2, regardless of the configuration.
with_noauth2 = functools.partial(Authentication, strategy=Noauth2)
