"""Decides who sends a request, and leaves the identity of the caller in the environ (docs: api-authentication)."""

from __future__ import annotations

import functools
import logging
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_context.context import RequestContext

from placement import errors, package
from placement.errors import StartError
from placement.http.api import Layer
from placement.http.environ import API, CONTEXT, GLOBAL_REQUEST_ID, REQUEST_ID
from placement.http.failures import ForeignPage, InternalError, Unauthenticated, respond
from placement.http.service import Service
from placement.middleware.http_basic import HttpBasic

LOG = logging.getLogger(__name__)

_KEYSTONE = "[api]auth_strategy is keystone:"
#: The user that noauth2 gives the role ``admin``.
_ADMINISTRATOR = "admin"
#: What keystoneauth sends with the auth type "none".
_ANONYMOUS = "notused"
#: Methods that change nothing, so that pages of other origins may send them.
_SAFE = ("GET", "HEAD")


class Authentication:
    """Has the strategy of ``[api]auth_strategy`` authenticate requests, but for the open paths of an API.

    It comes before the version is negotiated, and reports what goes wrong further in: a reply of 500 states no version.
    """

    def __init__(self, application: WSGIApplication, service: Service, strategy: Layer | None = None) -> None:
        """Raises StartError."""
        self._application = application
        strategy = strategy or _STRATEGIES[service.conf.api.auth_strategy]
        self._authenticated = strategy(Identity(application), service)
        self._allowed_origins = {*(service.conf.cors.allowed_origin or ())} - {"*"}
        #: The API whose empty path is not ``/``: OpenStack Placement requires a token for it with noauth2.
        self._strict_prefix = "" if strategy is Noauth2 else None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application.

        401 if the request has no valid credentials and needs them, 403 for a page of another origin; 500 for an
        exception before the reply begins.  A stream that fails later is cut off (``http/response.py``).
        """
        api, path = environ[API], environ["PATH_INFO"]
        try:
            # Before a password is checked, so that no page can guess it.
            if environ["REQUEST_METHOD"] not in _SAFE:
                _check_origin(environ, self._allowed_origins)
            if (path or ("" if api.prefix == self._strict_prefix else "/")) in api.open_paths:
                environ[CONTEXT] = _anonymous(environ)
                return self._application(environ, start_response)
            return self._authenticated(environ, start_response)
        except errors.Failure as failure:
            return respond(failure, environ, start_response)
        except Exception:
            path = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]
            LOG.exception("Unexpected error in %s %s", environ["REQUEST_METHOD"], path)
            return respond(InternalError(), environ, start_response)


class Identity:
    """Makes a context from the identity headers, by which the policy decides and which log lines show."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application; 401 if the request has no user."""
        # No layer further in needs the token.  What the context does not have cannot get into a log.
        context = RequestContext.from_environ(
            environ,
            auth_token=None,
            request_id=environ[REQUEST_ID],
            global_request_id=environ[GLOBAL_REQUEST_ID],
            overwrite=True,
        )
        ids = (context.project_id, context.domain_id, context.user_domain_id, context.project_domain_id)
        # The ids stand in each line of the log, and cannot end the line.
        if context.user_id is None or not "".join([context.user_id, *filter(None, ids)]).isprintable():
            _anonymous(environ)  # the newest context is that of the log
            # A reply and no exception: keystonemiddleware adds its challenge.
            return respond(Unauthenticated(), environ, start_response)
        environ[CONTEXT] = context
        return self._application(environ, start_response)


def _anonymous(environ: WSGIEnvironment) -> RequestContext:
    """Return a context without a user: identity headers of a request that was not authenticated are the client's."""
    ids = {"request_id": environ[REQUEST_ID], "global_request_id": environ[GLOBAL_REQUEST_ID]}
    return RequestContext(**ids, overwrite=True)


class Noauth2:
    """Believes the token, ``<user>[:<project>]``; the user ``admin`` is an administrator.  For tests."""

    def __init__(self, application: WSGIApplication, _service: Service) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application to the user that the token names; raises Unauthenticated without it."""
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if environ[API].anonymous_is_admin and (token == _ANONYMOUS or (token is None and not _is_of_a_page(environ))):
            token = _ADMINISTRATOR
        if token is None:
            raise Unauthenticated()
        user_id, _, project_id = token.partition(":")
        environ["HTTP_X_USER_ID"] = user_id
        environ.setdefault("HTTP_X_ROLES", "admin" if user_id == _ADMINISTRATOR else "")
        if environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
            environ.pop("HTTP_X_PROJECT_ID", None)
        else:
            environ.setdefault("HTTP_X_PROJECT_ID", project_id or user_id)
        return self._application(environ, start_response)


def _keystone(application: WSGIApplication, service: Service) -> WSGIApplication:
    try:
        from placement.middleware.keystone import keystone
    except ImportError:
        raise StartError(f"{_KEYSTONE} keystonemiddleware is missing: {package.install('keystone')}") from None
    return keystone(application, service)


_STRATEGIES: dict[str, Layer] = {"noauth2": Noauth2, "keystone": _keystone, "http_basic": HttpBasic}

#: The layer that authenticates by noauth2, regardless of the configuration.
with_noauth2 = functools.partial(Authentication, strategy=Noauth2)

# --- pages of other origins ------------------------------------------------------------------------------------------


def _check_origin(environ: WSGIEnvironment, allowed: Collection[str]) -> None:
    """Raise ForeignPage if the request has what a browser adds by itself, and is of a page of another origin.

    A browser adds the name and the password of HTTP Basic to each request for this service, also to a form of any page.
    With noauth2 it needs to add nothing to requests for an API with pages.  A token is added by no browser.

    Args:
        allowed: Origins of ``[cors]allowed_origin`` whose pages may write; not ``*``, which would be every page.
    """
    has_password = environ.get("HTTP_AUTHORIZATION", "").strip()[:5].lower() == "basic"
    if (has_password or environ[API].has_pages) and not (
        is_own_origin(environ) or environ.get("HTTP_ORIGIN") in allowed
    ):
        raise ForeignPage()


def _is_of_a_page(environ: WSGIEnvironment) -> bool:
    """Return whether a page of another origin may have sent the request: browsers let any page POST without a token."""
    return "HTTP_ORIGIN" in environ and not (environ[API].has_pages and is_own_origin(environ))


def is_own_origin(environ: WSGIEnvironment) -> bool:
    """Return whether no page of another origin sends the request, as far as its headers tell.

    Browsers state it in ``Sec-Fetch-Site`` where the connection is trustworthy (HTTPS, or the loopback interface), and
    otherwise send ``Origin`` with each POST.  A request with neither is no browser's.
    """
    site = environ.get("HTTP_SEC_FETCH_SITE")
    if site is not None:
        return site in ("same-origin", "none")  # "none": by the user, such as a bookmark
    origin = environ.get("HTTP_ORIGIN")
    return origin is None or _host(origin) == environ.get("HTTP_HOST")


def _host(origin: str) -> str:
    """Return host and port of an origin; empty for ``null``, which is that of many pages, and is no host."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
