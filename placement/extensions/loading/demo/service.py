"""A client of the application for the demonstration."""

from __future__ import annotations

import json
from typing import Any
from wsgiref.types import WSGIApplication

import webob


class DemoClient:
    """A client that sends requests to the application with the roles of an administrator."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def has(self, path: str) -> bool:
        """Whether the application serves a path."""
        request = webob.Request.blank(path, base_url="http://127.0.0.1", headers={"X-Auth-Token": "admin"})
        return bool(request.get_response(self._application).status_code != 404)

    def send(self, method: str, path: str, body: Any = None, caller: str = "admin") -> Any:
        """Send a request, and return the document of the response; None without one.

        Args:
            caller: The token for ``noauth2``: ``user:project``, or ``admin``.

        Raises:
            RuntimeError: The request is refused.
        """
        request = webob.Request.blank(path, method=method, base_url="http://127.0.0.1")
        request.headers["X-Auth-Token"] = caller
        request.headers["X-Roles"] = "admin"
        request.headers["OpenStack-API-Version"] = "placement 1.39"
        request.headers["X-OpenStack-Ironic-API-Version"] = "latest"
        if body is not None:
            request.content_type = "application/json"
            request.body = json.dumps(body).encode()
        reply = request.get_response(self._application)
        if reply.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {reply.status} {reply.text}")
        return reply.json if reply.body else None

    def uuid(self, name: str) -> str:
        """Return the uuid of the provider with a name."""
        (provider,) = self.send("GET", f"/resource_providers?name={name}")["resource_providers"]
        uuid: str = provider["uuid"]
        return uuid
