"""A client of the Placement service: claims, leases, queries and events.

``help(Client)`` lists the methods.  The OpenAPI document of the service, ``/v1/openapi.json``, describes requests and
responses.

client          Client and AsyncClient, which perform the steps of operations
operations      the operations as steps, without I/O
lease           leases and their steps
steps           the steps: HTTP requests and pauses
query, records  queries, and records of returned documents
errors          exceptions
auth            credentials
"""

from placement_client.auth import Basic, Keystone, Token
from placement_client.client import AsyncClient, AsyncEvents, Client, Events
from placement_client.errors import (
    BadRequest,
    Conflict,
    ErrorReply,
    Forbidden,
    Gone,
    HeldOtherwise,
    LeaseLost,
    NoReply,
    NoRoom,
    NotFound,
    NothingHeld,
    NothingPlaced,
    NoToken,
    PlacementError,
    PositionLost,
    Refused,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    Undecided,
)
from placement_client.lease import Lease
from placement_client.query import Group, Query
from placement_client.records import (
    Allocation,
    Candidate,
    Capacity,
    Claim,
    Consumer,
    Event,
    Explanation,
    Relaxation,
    Released,
    Request,
)

__all__ = [
    "Allocation",
    "AsyncClient",
    "AsyncEvents",
    "BadRequest",
    "Basic",
    "Candidate",
    "Capacity",
    "Claim",
    "Client",
    "Conflict",
    "Consumer",
    "ErrorReply",
    "Event",
    "Events",
    "Explanation",
    "Forbidden",
    "Gone",
    "Group",
    "HeldOtherwise",
    "Keystone",
    "Lease",
    "LeaseLost",
    "NoReply",
    "NoRoom",
    "NoToken",
    "NotFound",
    "NothingHeld",
    "NothingPlaced",
    "PlacementError",
    "PositionLost",
    "Query",
    "Refused",
    "Relaxation",
    "Released",
    "Request",
    "Token",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "Undecided",
]
