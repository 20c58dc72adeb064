"""Clients of running services, for tests that set up what others look at.

Those that judge what is answered use ``caller``: it shows every reply as it is, and repeats nothing.
"""

from __future__ import annotations

from typing import Any

from placement_client import Client, Token

from tests.children import PATIENCE
from tests.running import Service

#: No attempt ends because the machine is busy.
PATIENT = {"patience": PATIENCE, "timeout": PATIENCE}


def admin(service: Service) -> Client:
    """Return a client with all rights."""
    return Client(service.url, Token("admin"), **PATIENT)


def request(service: Service, method: str, path: str, body: Any = None) -> Any:
    """Send a request with all rights, and return the document of the reply; raises ErrorReply."""
    with admin(service) as client:
        return client.request(method, path, body)
