"""Answers only for names that are known, where the address of a client is all that lets it in.

A browser sends requests of any page to a server on its own machine if the page's name leads there; the page chooses the
name.  Such a request names that host, and no address of the loopback interface.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from placement.http.faults import ForeignHost
from placement.http.service import Service
from placement.middleware.refusal import refuse


def known_host(*names: str) -> Callable[[Any, Service], Any]:
    """The layer that lets in requests for the loopback interface, and for these names."""
    known = {"localhost", *(name.lower() for name in names)}

    def layer(application: Any, _service: Service) -> Any:
        def checked(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            host = environ.get("HTTP_HOST", "")
            if host and not _is_local(_without_port(host), known):
                return refuse(ForeignHost(host=host), environ, start_response)
            answer: Iterable[bytes] = application(environ, start_response)
            return answer

        return checked

    return layer


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().removesuffix(".")


def _is_local(host: str, known: set[str]) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in known
