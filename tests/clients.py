"""Clients of running services, for tests that set up records.

Tests that check responses use ``caller``, which returns every response unchanged, and does not retry.
"""

from __future__ import annotations

from typing import Any

from placement_client import Client, Token

from tests.children import PATIENCE
from tests.running import Service

#: A timeout that no attempt exceeds on a busy machine.
PATIENT = {"patience": PATIENCE, "timeout": PATIENCE}


def admin(service: Service) -> Client:
    """Return a client with all rights."""
    return Client(service.url, Token("admin"), **PATIENT)


def request(service: Service, method: str, path: str, body: Any = None) -> Any:
    """Send a request with all rights, and return the document of the response; raise ErrorReply for an error."""
    with admin(service) as client:
        return client.request(method, path, body)
