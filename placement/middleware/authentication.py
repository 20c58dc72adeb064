"""Authentication: identifies the caller of a request and stores the identity in the environ.

docs: api-authentication.
"""

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
#: The user to whom noauth2 assigns the role ``admin``.
_ADMINISTRATOR = "admin"
#: The token that keystoneauth sends with the auth type "none".
_ANONYMOUS = "notused"
#: Methods without side effects, which pages of other origins may send.
_SAFE = ("GET", "HEAD")


class Authentication:
    """The layer that authenticates requests by ``[api]auth_strategy``, except for the open paths of an API.

    It also reports unexpected exceptions of inner layers.  It runs before the version is negotiated, so a 500 response
    states no version.
    """

    def __init__(self, application: WSGIApplication, service: Service, strategy: Layer | None = None) -> None:
        """Create the layer with the configured strategy; raise StartError if it cannot work."""
        self._application = application
        strategy = strategy or _STRATEGIES[service.conf.api.auth_strategy]
        self._authenticated = strategy(Identity(application), service)
        self._allowed_origins = {*(service.conf.cors.allowed_origin or ())} - {"*"}
        #: The prefix of the API whose empty path needs a token, unlike ``/``, as in OpenStack Placement with noauth2.
        self._strict_prefix = "" if strategy is Noauth2 else None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the application's response, or the error document of a refusal or an exception.

        The status is 401 if required credentials are missing or invalid, 403 for a page of another origin, and 500 for
        an exception before the response begins.  A stream that fails later is cut off (``http/response.py``).
        """
        api, path = environ[API], environ["PATH_INFO"]
        try:
            # Before the password check, so that no page can guess passwords.
            if environ["REQUEST_METHOD"] not in _SAFE:
                _check_origin(environ, self._allowed_origins)
            if (path or ("" if api.prefix == self._strict_prefix else "/")) in api.open_paths:
                environ[CONTEXT] = _anonymous_context(environ)
                return self._application(environ, start_response)
            return self._authenticated(environ, start_response)
        except errors.Failure as failure:
            return respond(failure, environ, start_response)
        except Exception:
            path = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]
            LOG.exception("Unexpected error in %s %s", environ["REQUEST_METHOD"], path)
            return respond(InternalError(), environ, start_response)


class Identity:
    """The layer that creates the context for the policy and the log from the identity headers."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the application's response; 401 if the request has no user."""
        # Inner layers do not need the token, and without it no log can contain it.
        context = RequestContext.from_environ(
            environ,
            auth_token=None,
            request_id=environ[REQUEST_ID],
            global_request_id=environ[GLOBAL_REQUEST_ID],
            overwrite=True,
        )
        ids = (context.project_id, context.domain_id, context.user_domain_id, context.project_domain_id)
        # Every log line contains the ids, so they must not contain line breaks.
        if context.user_id is None or not "".join([context.user_id, *filter(None, ids)]).isprintable():
            _anonymous_context(environ)  # the log uses the newest context
            # A response instead of an exception, because keystonemiddleware adds its challenge to it.
            return respond(Unauthenticated(), environ, start_response)
        environ[CONTEXT] = context
        return self._application(environ, start_response)


def _anonymous_context(environ: WSGIEnvironment) -> RequestContext:
    """Return a context without a user: the client may have forged the identity headers."""
    ids = {"request_id": environ[REQUEST_ID], "global_request_id": environ[GLOBAL_REQUEST_ID]}
    return RequestContext(**ids, overwrite=True)


class Noauth2:
    """The strategy noauth2, for tests: it trusts tokens of the form ``<user>[:<project>]``.

    The user ``admin`` is an administrator.
    """

    def __init__(self, application: WSGIApplication, _service: Service) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the application's response to the user named by the token; raise Unauthenticated without one."""
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if environ[API].anonymous_is_admin and (
            token == _ANONYMOUS or (token is None and not _is_foreign_page(environ))
        ):
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
        raise StartError(
            f"{_KEYSTONE} keystonemiddleware is not installed: {package.install_command('keystone')}"
        ) from None
    return keystone(application, service)


_STRATEGIES: dict[str, Layer] = {"noauth2": Noauth2, "keystone": _keystone, "http_basic": HttpBasic}

#: The layer with the strategy noauth2, regardless of the configuration.
with_noauth2 = functools.partial(Authentication, strategy=Noauth2)

# --- pages of other origins ------------------------------------------------------------------------------------------


def _check_origin(environ: WSGIEnvironment, allowed_origins: Collection[str]) -> None:
    """Raise ForeignPage if a page of another origin could use ambient credentials (CSRF).

    Browsers add the name and password of HTTP Basic to every request for this service, even to a form of another page.
    Requests for an API with pages may need no credentials.  Browsers never add tokens.

    Args:
        environ: The environ of the request.
        allowed_origins: Origins of ``[cors]allowed_origin`` whose pages may write; ``*`` is excluded, as it matches
            every page.
    """
    has_password = environ.get("HTTP_AUTHORIZATION", "").strip()[:5].lower() == "basic"
    if (has_password or environ[API].has_pages) and not (
        is_own_origin(environ) or environ.get("HTTP_ORIGIN") in allowed_origins
    ):
        raise ForeignPage()


def _is_foreign_page(environ: WSGIEnvironment) -> bool:
    """Whether a page of another origin may have sent the request: any page can POST without a token."""
    return "HTTP_ORIGIN" in environ and not (environ[API].has_pages and is_own_origin(environ))


def is_own_origin(environ: WSGIEnvironment) -> bool:
    """Whether, by its headers, the request comes from a page of this origin or from no page.

    Browsers send ``Sec-Fetch-Site`` over trustworthy connections (HTTPS, or the loopback interface), and otherwise
    ``Origin`` with each POST.  A request with neither header does not come from a browser.
    """
    site = environ.get("HTTP_SEC_FETCH_SITE")
    if site is not None:
        return site in ("same-origin", "none")  # "none": opened by the user, for example from a bookmark
    origin = environ.get("HTTP_ORIGIN")
    return origin is None or _host(origin) == environ.get("HTTP_HOST")


def _host(origin: str) -> str:
    """Return host and port of an origin; empty for ``null``, the origin of sandboxed pages."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
