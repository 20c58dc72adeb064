"""/console/query"""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

from placement import errors
from placement.extensions.console import dry_runs, pages
from placement.extensions.console.machine_names import named_snapshot
from placement.extensions.console.views import candidates, commands, suggestions
from placement.extensions.console.views.choice_form import ChoiceForm
from placement.extensions.console.views.dry_run import DryRunResult
from placement.extensions.console.views.query_form import Pairs, QueryForm, of_search, parse_text, without_blanks
from placement.extensions.v1 import lookup, query_text, request_query
from placement.extensions.v1.count.count import count
from placement.extensions.v1.explain.explain import explain
from placement.extensions.v1.explain.sentence import PROPERTIES
from placement.extensions.v1.pick.picker import Picker, PickRequest
from placement.extensions.v1.pick.strategy import Preference
from placement.extensions.v1.schemas import capacity, explanation, search
from placement.http.body import parse_json
from placement.http.endpoint import endpoint
from placement.http.environ import CONTEXT
from placement.http.request import Request
from placement.http.response import Reply, ok
from placement.index.snapshot import Snapshot
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Parameters, Query
from placement.search.find import SearchResult, Settings, find
from placement.search.query import existence
from placement.search.query.query import SearchQuery
from placement.search.solver.problem import Candidate
from placement.version_history import OLDEST

#: Parameter with the whole query as text.
_RAW = "raw"
#: Candidates on a page: default and maximum.
_CANDIDATES, _MAX_CANDIDATES = 12, 60
#: Maximum number of trees, and of aggregates, listed with their counts.
_PLACES = 8

_QUERY = Query(search.object_of((*search.PARAMETERS, capacity.COUNT)))


@endpoint(policy="placement:allocation_candidates:list", negotiates=False)
def show(req: Request) -> Reply:
    """Show a query as a form and as text, with its candidates; without a query, show an empty form."""
    return _page(req)


@endpoint(policy="placement:allocation_candidates:list", negotiates=False)
def try_claim(req: Request) -> Reply:
    """Show a query with its candidates, and the result of the dry run of a claim.

    The form of a candidate contains the claim itself, since the candidates may have changed.  The form with a strategy
    lets the service choose.
    """
    form = dry_runs.form_of(req)
    caller, options = req.environ[CONTEXT], req.conf.placement
    owner = {
        "project_id": caller.project_id or options.incomplete_consumer_project_id,
        "user_id": caller.user_id or options.incomplete_consumer_user_id,
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    consumer = str(uuid.uuid4())
    if choice := ChoiceForm.from_fields(form):
        return _page(req, dry_runs.choice(req, choice.claims(_pairs(req), {"consumer": consumer, **owner})), choice)
    claim = parse_json(str(form.get("claim", "")).encode(), req.conf.api.max_request_body_values)
    if not isinstance(claim, dict):
        raise errors.MalformedJSON(reason="a claim must be an object")
    return _page(req, dry_runs.claim(req, consumer, {**claim, **owner}))


def _page(req: Request, dry_run_result: DryRunResult | None = None, choice: ChoiceForm | None = None) -> Reply:
    """Return the page of a query.

    Args:
        dry_run_result: The result of the requested dry run.
        choice: The submitted form with a strategy.
    """
    pairs = _pairs(req)
    variables: dict[str, Any] = {
        "page": "query",
        "form": QueryForm.from_parameters(pairs),
        "dry_run_result": dry_run_result,
        "choice": choice or ChoiceForm(),
        "preferences": [*Preference],
        "reasons": {"absent": ("has none", "have none"), **PROPERTIES},
    }
    if not pairs:
        return pages.show(req, "query.html", sentence="", result=None, explained=None, **variables)
    snapshot, query = named_snapshot(req), None
    try:
        req.parameters = _QUERY.validate(pairs, OLDEST, strict=True)
        nodes = lookup.nodes_named(snapshot, req.database, request_query.in_tree_values(pairs))
        query = request_query.from_parameters(req.parameters, snapshot, nodes, req.conf)
        existence.check(query, snapshot, req.database)
    except errors.BadRequest as failure:
        explained = None if query is None else _explanation_document(req, query, snapshot)
        sentence = failure.line
        return pages.show(req, "query.html", 400, sentence=sentence, result=None, explained=explained, **variables)
    limit, copies = min(query.limit or _CANDIDATES, _MAX_CANDIDATES), int(req.parameters.get("count", "1"))
    result = find(dataclasses.replace(query, limit=limit), snapshot, Settings.from_conf(req.conf))
    req.log_search(len(result.candidates), result.obstacle)
    counted = _capacity_document(req, query, snapshot, copies) if result.candidates else None
    access = dry_runs.access_of(req)
    return pages.show(
        req,
        "query.html",
        sentence="",
        result=result,
        cards=[*candidates.cards(snapshot, _order_for_claims(req, query, result, limit))],
        counted=counted,
        copies=copies,
        explained=None if result.candidates else _explanation_document(req, query, snapshot),
        curl=commands.curl(access, _with_uuids(of_search(pairs), query)),
        openstack=commands.openstack(access, query),
        questions=commands.questions(access, pairs),
        claims=commands.claims(access, pairs),
        may_claim=req.may("placement:allocations:update"),
        may_choose=req.may("placement:v1:claims:create"),
        address=query_text.text(pairs),
        **variables,
    )


_SUGGEST = Query(
    Object(
        Field("of", string(enum=["classes", "traits", "aggregates", "providers"]), required=True),
        Field("part", string(maxLength=255), required=True),
    )
)


@endpoint(policy="placement:v1:overview:show", query=_SUGGEST, negotiates=False)
def suggest(req: Request) -> Reply:
    """List names that contain a text; names that begin with it come first."""
    names = suggestions.suggest(req.index.current(), req.parameters.get("of"), req.parameters.get("part"))
    return ok({"names": names})


@endpoint(policy="placement:allocation_candidates:list", negotiates=False)
def show_form(req: Request) -> Reply:
    """Show the form filled with a query whose text was edited on the page."""
    return pages.show(req, "query_form.html", form=QueryForm.from_parameters(_pairs(req)))


def _pairs(req: Request) -> Pairs:
    """Return the parameters of the query, sent separately or as one text.

    Raises:
        InvalidQuery: The parameters are not UTF-8 or contain NUL.
    """
    pairs = req.pairs()
    text = Parameters(pairs).get(_RAW)
    return without_blanks(pairs if text is None else parse_text(text))


def _capacity_document(req: Request, query: SearchQuery, snapshot: Snapshot, copies: int) -> dict[str, Any] | None:
    """Return the capacity for jobs of ``copies`` copies as a document; None if the caller may not see counts."""
    if not req.may("placement:v1:capacity:show"):
        return None
    query = request_query.with_avoided_traits(query, req.conf)
    return capacity.document(count(query, snapshot, Settings.from_conf(req.conf), copies=copies), _PLACES)


def _explanation_document(req: Request, query: SearchQuery, snapshot: Snapshot) -> dict[str, Any] | None:
    """Explain why the query has no candidates, with relaxations; None if the caller may not see explanations."""
    if not req.may("placement:v1:explain"):
        return None
    query = request_query.with_avoided_traits(query, req.conf)
    unknown = existence.unknown_traits(query.trait_names, snapshot, req.database)
    return explanation.document(explain(query, snapshot, Settings.from_conf(req.conf), unknown))


def _order_for_claims(req: Request, query: SearchQuery, result: SearchResult, limit: int) -> list[Candidate]:
    """Return the candidates in the order in which claims would take them: first one per tree, then all others.

    Claims avoid some trees; candidates in these trees come last.
    """
    unlimited = dataclasses.replace(request_query.with_avoided_traits(query, req.conf), limit=None)
    picker = Picker(result.snapshot, settings=Settings.from_conf(req.conf), seed=1)
    chosen: tuple[Candidate, ...] = ()
    trees = limit
    while trees and not chosen:
        [pick] = picker.pick([PickRequest(unlimited, copies=trees, dry_run=True)])
        chosen = () if pick is None else pick.candidates
        trees //= 2
    return [*chosen, *(candidate for candidate in result.candidates if candidate not in chosen)][:limit]


def _with_uuids(pairs: Pairs, query: SearchQuery) -> Pairs:
    """Return the parameters as Placement accepts them: ``in_tree`` by uuid instead of name."""
    trees = {f"in_tree{group.suffix}": group.in_tree for group in query.groups}
    return [(name, trees.get(name) or value) for name, value in pairs]
