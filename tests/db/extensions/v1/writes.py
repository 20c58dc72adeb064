"""The routes of /v1 that write, as scenarios of the same kind as those of Placement (tests/db/writes.py).

Every request has room in one tree only, so that its place is the same in each run.
"""

from __future__ import annotations

from typing import Any

from placement.db.feed import USAGE
from placement.extensions.v1.history.tables import event_order, usage_samples, usage_shares
from tests.db.scenario_requests import FULL, HOST, OTHER, claim
from tests.db.scenarios import Call, Write


def request(consumer: str = "consumer", tree: str = "host", amount: int = 1, **more: Any) -> dict[str, Any]:
    """A consumer asks for a few VCPUs in the tree of a provider."""
    return {
        "consumer": f"${consumer}",
        "consumer_type": "T_$RUN",
        "project_id": "$RUN",
        "user_id": "$RUN",
        "query": f"resources=VCPU:{amount}&in_tree=${tree}",
        **more,
    }


def claims(*requests: dict[str, Any], **options: Any) -> Call:
    return Call("POST /v1/claims", {"requests": [*requests], **options})


#: Both hosts, and the names that a new consumer needs: those of the first consumer are known.
HOSTS = (*HOST, *OTHER, claim(consumer="consumer_before", host={"DISK_GB": 1}))
PLACED = (*HOSTS, claims(request()))
LEASED = (*HOSTS, claims(request(), request("consumer_2", "other", 2), expires_in=3600))
EXTENSION = "POST /v1/claims/$consumer/extend"
SEVERAL = (request(), request("consumer_2", "other", 2), request("consumer_3", amount=3))
BOTH = {"host": USAGE, "other": USAGE}

ACCEPTED = (
    Write("claim a place", HOSTS, claims(request()), {"host": USAGE}, 200),
    Write("claim the first place of an owner", (*HOST, *OTHER), claims(request()), {"host": USAGE}, 200),
    Write("claim a place for an hour", HOSTS, claims(request(), expires_in=3600), {"host": USAGE}, 200),
    Write("claim places for several", HOSTS, claims(*SEVERAL), BOTH, 200),
    Write("claim places for all of several", HOSTS, claims(*SEVERAL, all_or_nothing=True), BOTH, 200),
    Write(
        "claim places for some of several",
        HOSTS,
        claims(request(amount=9), request("consumer_2"), request("consumer_before", "other")),
        {"host": USAGE},
        200,
    ),
    Write(
        "move by a claim",
        PLACED,
        claims(request(tree="other", keep=False, consumer_generation=1)),
        BOTH,
        200,
    ),
    Write(
        "move and claim for an hour",
        (*HOST, *OTHER, claim(host={"VCPU": 4})),
        claims(request(tree="other", keep=False, consumer_generation=1), request("consumer_2"), expires_in=3600),
        BOTH,
        200,
    ),
    # The rows of two consumers are locked, or made, by as many statements in any order of their uuids.
    Write(
        "claim a place together with another",
        PLACED,
        claims(request("consumer_2"), together_with=["$consumer"]),
        {"host": USAGE},
        200,
    ),
    Write(
        "claim a place apart from one that holds nothing",
        HOSTS,
        claims(request(), apart_from=["$consumer_4"]),
        {"host": USAGE},
        200,
    ),
    Write("make a lease endless", LEASED, Call(EXTENSION, {"expires_in": None}), {}, 200),
    Write(
        "give a claim of Placement an end",
        (*HOST, claim(host={"VCPU": 1})),
        Call(EXTENSION, {"expires_in": 86_400}),  # no run of the same test may end it
        {},
        200,
    ),
    Write(
        "release named consumers", LEASED, Call("DELETE /v1/claims?consumer=$consumer&consumer=$consumer_2"), BOTH, 200
    ),
    Write(
        "release the consumers of a project",
        LEASED,
        Call("DELETE /v1/claims?project=$RUN&provider=$other"),
        {"other": USAGE},
        200,
    ),
)

REFUSED = (
    Write("extend what is not held", HOSTS, Call(EXTENSION, {"expires_in": 60}), status=404),
    Write("a place where none is free", FULL, claims(request()), status=409),
    Write("places for all of several", FULL, claims(request("consumer_2", amount=9), request()), status=409),
    Write(
        "places for all of several of which one has none",
        HOSTS,
        claims(request("consumer_2", amount=9), request(), all_or_nothing=True),
        status=409,
    ),
    Write("a place for a consumer that has another one", PLACED, claims(request(amount=2)), status=409),
    Write(
        "a move from a wrong generation",
        PLACED,
        claims(request(tree="other", keep=False, consumer_generation=7)),
        status=409,
    ),
)

#: Those of which a dry run is sent.
TRIED = ("claim places for several", "move by a claim", "release named consumers")

#: Where most can remain half done.
DEADLY = ("claim places for several", "move and claim for an hour", "release named consumers")

MALFORMED = (
    ("POST", "/v1/claims", {"requests": []}),
    ("POST", "/v1/claims/$consumer/extend", {"expires_in": 0}),
)

#: Who reads events puts them in order.
HOUSEKEEPING = (event_order, usage_samples, usage_shares)
