"""/console/query"""

from __future__ import annotations

import dataclasses
from typing import Any

from placement import errors
from placement.conf.searches import settings_of
from placement.console import pages
from placement.console.views import candidates, commands
from placement.console.views.query_form import Pairs, QueryForm, parse_text, without_blanks
from placement.http.endpoint import endpoint
from placement.http.environ import API
from placement.http.request import Request
from placement.http.response import Reply
from placement.index.snapshot import Snapshot
from placement.schemas.declarations import Object
from placement.schemas.document import Parameters, Query
from placement.search.count.count import count
from placement.search.explain.explaining import explain
from placement.search.find import find
from placement.search.query import existence
from placement.search.query.query import SearchQuery
from placement.v1 import searching
from placement.v1.schemas import capacity, explanation, search
from placement.version_history import OLDEST

#: The parameter that has the whole query as text.
_RAW = "raw"
#: Candidates on a page: by default, and at most.
_SHOWN, _MOST_SHOWN = 12, 60
#: Trees and aggregates that are named with their counts.
_PLACES = 8

_QUERY = Query(Object(*search.PARAMETERS), repeated=search.REPEATED)


@endpoint(policy="placement:allocation_candidates:list", negotiates=False)
def show(req: Request) -> Reply:
    """Show a query as form and text, and its candidates; without a query, an empty form."""
    pairs = _pairs(req)
    shown: dict[str, Any] = {"page": "query", "form": QueryForm.of(pairs)}
    if not pairs:
        return pages.show(req, "query.html", sentence="", found=None, explained=None, **shown)
    snapshot = req.index.current()
    query = None
    try:
        req.parameters = _QUERY.validate(pairs, OLDEST)
        query = searching.query_of(req, snapshot)
        existence.check(query, snapshot, req.database)
    except errors.BadRequest as refused:
        explained = None if query is None else _explained(req, query, snapshot)
        sentence = refused.sentence
        return pages.show(req, "query.html", 400, sentence=sentence, found=None, explained=explained, **shown)
    most = min(query.limit or _SHOWN, _MOST_SHOWN)
    found = find(dataclasses.replace(query, limit=most), snapshot, settings_of(req.conf))
    req.log_search(len(found.candidates), found.obstacle)
    return pages.show(
        req,
        "query.html",
        sentence="",
        found=found,
        cards=[*candidates.cards(found)],
        counted=_counted(req, query, snapshot) if found.candidates else None,
        explained=None if found.candidates else _explained(req, query, snapshot),
        curl=commands.curl(req.absolute_url("").removesuffix(req.environ[API].prefix), _with_uuids(pairs, query)),
        openstack=commands.openstack(query),
        **shown,
    )


@endpoint(policy="placement:allocation_candidates:list", negotiates=False)
def show_form(req: Request) -> Reply:
    """Show the form that holds a query, for a page whose text was edited."""
    return pages.show(req, "query_form.html", form=QueryForm.of(_pairs(req)))


def _pairs(req: Request) -> Pairs:
    """Return the parameters of the query, given as the page's own or as one text.

    Raises:
        InvalidQuery: They are not UTF-8.
    """
    pairs = req.pairs()
    text = Parameters(pairs).get(_RAW)
    if text is None:
        return without_blanks(pairs)
    try:
        return without_blanks(parse_text(text))
    except UnicodeError as error:
        raise errors.InvalidQuery(reason=error) from None


def _counted(req: Request, query: SearchQuery, snapshot: Snapshot) -> dict[str, Any] | None:
    """Return how many times the query could be placed; None where the caller may not know."""
    if not _may(req, "placement:v1:capacity:show"):
        return None
    return capacity.document(count(query, snapshot, settings_of(req.conf)), _PLACES)


def _explained(req: Request, query: SearchQuery, snapshot: Snapshot) -> dict[str, Any] | None:
    """Return why the query has no candidate, and what would be enough; None where the caller may not know."""
    if not _may(req, "placement:v1:explain"):
        return None
    names = searching.known_names(req, query, snapshot)
    return explanation.document(explain(query, snapshot, settings_of(req.conf), names))


def _may(req: Request, rule: str) -> bool:
    try:
        req.authorize(rule)
    except errors.Forbidden:
        return False
    return True


def _with_uuids(pairs: Pairs, query: SearchQuery) -> Pairs:
    """Return the parameters as Placement takes them: ``in_tree`` with a uuid, where it has a name."""
    trees = {f"in_tree{group.suffix}": group.in_tree for group in query.groups}
    return [(name, trees.get(name) or value) for name, value in pairs]
