"""Scenarios of the writing routes of /v1, like the scenarios of Placement (tests/db/writes.py).

Every request fits in one tree only, so its place is the same in each run.
"""

from __future__ import annotations

from typing import Any

from placement.db.feed import USAGE
from placement.extensions.v1.history.tables import event_order, usage_samples, usage_shares
from tests.db.scenario_requests import FULL, HOST, OTHER, claim
from tests.db.scenarios import Call, Write


def request(consumer: str = "consumer", tree: str = "host", amount: int = 1, **more: Any) -> dict[str, Any]:
    """Return a request for a few VCPUs in the tree of a provider."""
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


#: Both hosts, and a first consumer, which creates the names that a new consumer needs.
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
    # The number of statements that lock or create the rows of two consumers does not depend on the order of uuids.
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
        "set the expiry of a claim of Placement",
        (*HOST, claim(host={"VCPU": 1})),
        Call(EXTENSION, {"expires_in": 86_400}),  # later than the end of any test run
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
    Write("extend a claim that does not exist", HOSTS, Call(EXTENSION, {"expires_in": 60}), status=404),
    Write("claim a place on a full host", FULL, claims(request()), status=409),
    Write(
        "claim places on a full host for several", FULL, claims(request("consumer_2", amount=9), request()), status=409
    ),
    Write(
        "claim places for all of several, one without a place",
        HOSTS,
        claims(request("consumer_2", amount=9), request(), all_or_nothing=True),
        status=409,
    ),
    Write("claim another place for a consumer", PLACED, claims(request(amount=2)), status=409),
    Write(
        "move from a wrong generation",
        PLACED,
        claims(request(tree="other", keep=False, consumer_generation=7)),
        status=409,
    ),
)

#: Scenarios that are also sent as dry runs.
DRY_RUN_NAMES = ("claim places for several", "move by a claim", "release named consumers")

#: Scenarios in which a killed process could leave the most work half done.
DEADLY = ("claim places for several", "move and claim for an hour", "release named consumers")

MALFORMED = (
    ("POST", "/v1/claims", {"requests": []}),
    ("POST", "/v1/claims/$consumer/extend", {"expires_in": 0}),
)

#: Tables that maintenance and readers of events write.
HOUSEKEEPING = (event_order, usage_samples, usage_shares)
