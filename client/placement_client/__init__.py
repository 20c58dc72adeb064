"""A client of the Placement service: claims, leases, questions and events.

``help(Client)`` has the methods.  The OpenAPI document of the service, ``/v1/openapi.json``, describes what is sent and
returned.

client          Client and AsyncClient: they perform the steps of an operation
operations      what they do, step by step, without I/O; lease: the steps of a lease
steps           a call, a pause, a reply
query, records  what is asked for, and what is returned
errors          what can go wrong
auth            what identifies the caller
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
