"""Authentication by tokens that the Identity service validates, with keystonemiddleware (docs: api-authentication)."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import webob.exc
from keystoneauth1.exceptions import ClientException
from keystonemiddleware import auth_token
from keystonemiddleware.auth_token._exceptions import ConfigurationError

from placement import errors, package
from placement import microversion as mv
from placement.errors import StartError
from placement.http.environ import API
from placement.http.failures import Unauthenticated
from placement.http.service import Service
from placement.middleware.keystone_check import find_problem

LOG = logging.getLogger(__name__)

SECTION = "[keystone_authtoken]"


class IdentityUnavailable(errors.Unavailable):
    template = "The Identity service cannot validate tokens at the moment."


class _Protocol(auth_token.AuthProtocol):
    """The middleware, raising failures instead of sending its own error documents."""

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the application's response.

        Raises:
            Unauthenticated: The token is invalid.
            IdentityUnavailable: The Identity service does not respond.
        """
        try:
            reply: Iterable[bytes] = super().__call__(environ, start_response)
            return reply
        except (IdentityUnavailable, ClientException) as reason:
            LOG.error("No token can be validated: %s", reason.__cause__ or reason)
            raise IdentityUnavailable() from None

    def process_request(self, request: Any) -> Any:
        """Set the user's identity headers and return None, or return a response for the client."""
        try:
            response = super().process_request(request)
        except webob.exc.HTTPServiceUnavailable as reason:
            raise IdentityUnavailable from reason
        except webob.exc.HTTPUnauthorized as reason:
            raise Unauthenticated(reason.headers.get("WWW-Authenticate", "")) from None
        if request.service_token and request.user_token_valid:
            # The middleware has replaced the user's scope with the scope of the service token: restore it.
            request.set_user_headers(request.token_auth.user)
        return response

    def validate_allowed_request(self, request: Any, token: Any) -> None:
        """Check the access rules of an application credential against the service type of the request's API."""
        api = request.environ[API]
        if api.prefix:  # [keystone_authtoken]service_type is the type of the API without a prefix
            auth_token.BaseAuthProtocol(None, service_type=api.name).validate_allowed_request(request, token)
        else:
            super().validate_allowed_request(request, token)


def keystone(application: WSGIApplication, service: Service) -> WSGIApplication:
    """Return the configured middleware; raise StartError if it could not serve any request."""
    conf = service.conf
    try:
        protocol = _Protocol(application, {"oslo_config_config": conf})
    except (ClientException, ConfigurationError) as reason:
        raise StartError(f"{SECTION}: {reason}") from reason
    # Application credentials may be restricted to a service type.
    conf.set_default("service_type", mv.SERVICE_TYPE, group="keystone_authtoken")
    options = conf.keystone_authtoken
    if not (options.auth_type or options.auth_section):
        raise StartError(f"{SECTION} does not specify how to reach the Identity service: set auth_type")
    if options.memcached_servers and importlib.util.find_spec("memcache") is None:
        raise StartError(
            f"{SECTION} memcached_servers: python-memcached is missing: {package.install_command('keystone')}"
        )
    if finding := find_problem(conf):
        LOG.error("No token can be validated: %s", finding)
    return protocol
