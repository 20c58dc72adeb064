"""Finds out who sends a request, and puts what it finds into the identity headers (docs: api-authentication)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from placement.errors import StartError
from placement.http.faults import Unauthenticated
from placement.http.service import Service
from placement.middleware.http_basic import HttpBasic
from placement.middleware.refusal import refuse

_KEYSTONE = "[api]auth_strategy is keystone:"


def authentication(application: Any, service: Service) -> Any:
    """The application behind the ``[api]auth_strategy`` of the configuration."""
    return _STRATEGIES[service.conf.api.auth_strategy](application, service)


class Noauth2:
    """Believes the token: ``<user>[:<project>]``, and ``admin`` is an administrator.  For tests."""

    def __init__(self, application: Any, _service: Service) -> None:
        self.application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The answer of the application to the user that the token names; 401 without a token."""
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if token is None:
            if environ["PATH_INFO"] != "/":
                return refuse(Unauthenticated(), environ, start_response)
            return self.application(environ, start_response)
        user_id, _, project_id = token.partition(":")
        environ["HTTP_X_USER_ID"] = user_id
        environ.setdefault("HTTP_X_ROLES", "admin" if user_id == "admin" else "")
        if environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
            environ.pop("HTTP_X_PROJECT_ID", None)
        else:
            environ.setdefault("HTTP_X_PROJECT_ID", project_id or user_id)
        return self.application(environ, start_response)


def _keystone(application: Any, service: Service) -> Any:
    try:
        from placement.middleware.keystone import Keystone
    except ImportError:
        raise StartError(f"{_KEYSTONE} keystonemiddleware is missing, the extra 'keystone'") from None
    return Keystone(application, service)


_STRATEGIES = {"noauth2": Noauth2, "keystone": _keystone, "http_basic": HttpBasic}
