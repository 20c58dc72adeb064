"""/v1/overview"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from placement.db.database import Database
from placement.errors import Violation
from placement.extensions.v1 import lookup, nodes
from placement.extensions.v1.failures import InvalidField
from placement.extensions.v1.overview.trees import Amount, Mark, TreeFilter, TreeOrder
from placement.extensions.v1.schemas import paging
from placement.extensions.v1.schemas.date import DATE
from placement.extensions.v1.schemas.provider import documents
from placement.http.response import encode
from placement.index.snapshot import Snapshot
from placement.schemas.declarations import IDENTIFIER, Field, Object, string
from placement.schemas.document import Parameters, Query

#: Providers per encoded piece.
_PIECE = 1000
#: A uuid with or without dashes: aggregates keep the form that the client wrote (docs: api-bodies).
_AGGREGATE = string(
    pattern="^[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$", description="the uuid of an aggregate"
)
_ORDERS = "free, used or capacity of a resource class, for example free:VCPU, or -free:VCPU for the least first"
_SORT = string(pattern=f"^-?({'|'.join(Amount)}):[A-Z0-9_]{{1,255}}$", description=_ORDERS)
_LIMIT = string(pattern="^[1-9][0-9]{0,8}$", description="a whole number from 1 to 999999999")
_MARK = string(pattern=f"^(-?[0-9]{{1,30}}:)?{paging.ID}$", description=paging.MARK)

SHOW = Query(
    Object(
        Field("limit", _LIMIT, text="The maximum number of providers in a page of whole trees."),
        Field("after", _MARK, text=paging.AFTER),
        Field("root", IDENTIFIER, text="The tree of this provider, by uuid or name, or by the name of its node."),
        Field("class", IDENTIFIER, text="Trees with a provider that has inventory of this resource class."),
        Field("aggregate", _AGGREGATE, text="Trees with a provider that is in this aggregate."),
        Field("trait", IDENTIFIER, text="Trees with a provider that has this trait."),
        Field(
            "sort",
            _SORT,
            text="The amount of a resource class to sort trees by, the largest first; with a minus, the least first.",
        ),
        Field("at", DATE, text="A past date (UTC), or an age: the providers at that time."),
        Field(
            "over_committed",
            string(enum=["1", "true"]),
            text="Trees with an over-committed provider.",
        ),
    )
)


def tree_filter(parameters: Parameters, snapshot: Snapshot, database: Database) -> TreeFilter:
    """Return the filter of a query for trees.

    Raises:
        UnknownProvider, UnknownClassInQuery, UnknownTraitsInQuery: The query names a provider, class or trait that does
            not exist.
    """
    root = parameters.get("root")
    if root is not None:
        root = snapshot.provider(lookup.provider_in_parameter(snapshot, database, "root", root)).root
    return TreeFilter(
        root=root,
        resource_class=lookup.require_class(snapshot, parameters.get("class")),
        aggregate=parameters.get("aggregate"),
        trait=lookup.require_trait(snapshot, database, parameters.get("trait")),
        over_committed="over_committed" in parameters,
    )


def tree_order(parameters: Parameters, snapshot: Snapshot) -> TreeOrder | None:
    """Return the order of the trees in a query; None for the order of their ids.

    Raises:
        InvalidField: The resource class does not exist.
    """
    sort: str | None = parameters.get("sort")
    if sort is None:
        return None
    amount, _, resource_class = sort.removeprefix("-").partition(":")
    if resource_class not in snapshot.class_ids:
        raise InvalidField(Violation("sort", f'names "{resource_class}", which is not a resource class', _ORDERS))
    return TreeOrder(Amount(amount), resource_class, least_first=sort.startswith("-"))


def mark(parameters: Parameters) -> Mark | None:
    """Return the mark after which the page begins; None to begin at the first tree.

    Raises:
        InvalidField: The mark belongs to a list in another order.
    """
    after: str | None = parameters.get("after")
    if after is None:
        return None
    total, _, row_id = after.rpartition(":")
    if bool(total) != ("sort" in parameters):
        raise InvalidField(Violation("after", f"is {after}", f"{paging.MARK}, of a list in the same order"))
    return Mark(int(total) if total else None, int(row_id))


def mark_text(last: Mark) -> str:
    """Return the text of a mark in a query."""
    return str(last.id) if last.sum is None else f"{last.sum}:{last.id}"


def pieces(
    snapshot: Snapshot,
    slots: Iterable[int],
    consumers: Mapping[int, int],
    next_url: str | None,
    node_names: Mapping[str, str],
) -> Iterator[bytes]:
    """Yield the document of a page in pieces, each with up to ``_PIECE`` providers.

    Args:
        snapshot: The snapshot of the providers.
        slots: The slots of the providers of the page, in order.
        consumers: The number of consumers with resources on a provider, by its id.
        next_url: The URL of the next page.
        node_names: The names of nodes, by uuid.
    """
    yield b'{"providers":['
    remaining, separator = iter(slots), b""
    while batch := [*itertools.islice(remaining, _PIECE)]:
        yield separator + _members(documents(snapshot, batch, consumers), node_names)
        separator = b","
    yield b'],"next":%s}' % encode(next_url)


def _members(providers: list[dict[str, Any]], node_names: Mapping[str, str]) -> bytes:
    """Return the encoded documents without the brackets of an array."""
    if node_names:
        nodes.insert_names(nodes.providers_in(providers), node_names)
    return encode(providers)[1:-1]
