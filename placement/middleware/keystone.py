"""Has the Identity service validate the tokens, by keystonemiddleware (docs: api-authentication)."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import webob.exc
from keystoneauth1.exceptions import ClientException
from keystonemiddleware import auth_token
from keystonemiddleware.auth_token._exceptions import ConfigurationError
from oslo_config import cfg

from placement import errors
from placement import microversion as mv
from placement.errors import StartError
from placement.http.faults import Unauthenticated
from placement.http.service import Service
from placement.middleware.keystone_check import complaint
from placement.middleware.refusal import refuse
from placement.middleware.unexpected import UnexpectedErrors

LOG = logging.getLogger(__name__)

SECTION = "[keystone_authtoken]"


class IdentityUnavailable(errors.Unavailable):
    says = "The Identity service cannot validate tokens at the moment."


class Keystone:
    """Lets in whose token the Identity service knows; the version document needs none."""

    def __init__(self, application: Any, service: Service) -> None:
        self.application = application
        self.protected = UnexpectedErrors(_protocol(application, service.conf), service)
        if found := complaint(service.conf):
            LOG.error("No token can be validated: %s", found)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The answer of the application; 401 for a bad token, 503 if Keystone cannot tell."""
        if environ["PATH_INFO"] in ("", "/"):
            return self.application(environ, start_response)
        return self.protected(environ, start_response)


class _Protocol(auth_token.AuthProtocol):
    """The middleware, with its failures in the form of this API."""

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return super().__call__(environ, start_response)
        except (IdentityUnavailable, ClientException) as reason:
            LOG.error("No token can be validated: %s", reason.__cause__ or reason)
            return refuse(IdentityUnavailable(), environ, start_response)
        except Unauthenticated as refused:
            return refuse(refused, environ, start_response)

    def process_request(self, request: Any) -> Any:
        """What is answered right away, if anything; otherwise the identity headers are those of the user."""
        try:
            answer = super().process_request(request)
        except webob.exc.HTTPServiceUnavailable as reason:
            raise IdentityUnavailable from reason
        except webob.exc.HTTPUnauthorized as reason:
            raise Unauthenticated(reason.headers.get("WWW-Authenticate", "")) from None
        if request.service_token and request.user_token_valid:
            # The service's own scope took the place of that of the user for whom it asks.
            request.set_user_headers(request.token_auth.user)
        return answer


def _protocol(application: Any, conf: cfg.ConfigOpts) -> _Protocol:
    """The middleware as configured; raises StartError where it could not serve a single request."""
    try:
        protocol = _Protocol(application, {"oslo_config_config": conf})
    except (ClientException, ConfigurationError) as reason:
        raise StartError(f"{SECTION}: {reason}") from reason
    # Application credentials may be restricted to requests of a service, so it must be told which one this is.
    conf.set_default("service_type", mv.SERVICE_TYPE, group="keystone_authtoken")
    options = conf.keystone_authtoken
    if not (options.auth_type or options.auth_section):
        raise StartError(f"{SECTION} must tell how to reach the Identity service: auth_type is missing")
    if options.memcached_servers and importlib.util.find_spec("memcache") is None:
        raise StartError(f"{SECTION} memcached_servers: python-memcached is missing, the extra 'keystone'")
    return protocol
