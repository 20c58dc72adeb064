"""Output of ``placement-ask claim``, ``extend`` and ``release`` (docs: ask)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.extensions.terminal.consumers import holdings
from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import seconds, table

Document = Mapping[str, Any]
COLUMNS = ("consumer", "outcome", "until", "provider", "resources", "why")
RELEASED = ("consumer", "outcome")
_REFUSED = "refused"
_DRY = "Dry run: nothing was written."


def results(document: Document) -> list[Document]:
    """Return the results in a response to POST /v1/claims, or in the response shown by a dry run."""
    listed: list[Document] = body_of(document)["results"]
    return listed


def granted(document: Document) -> bool:
    """Whether every claim was granted."""
    return all(result["outcome"] != _REFUSED for result in results(document))


def rows(claims: Sequence[Document], *, everywhere: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield a row for each allocation of a consumer, and a row for each refusal.

    Args:
        claims: The results of a request, or documents of claims.
        everywhere: Whether to repeat the consumer and the reason of a refusal in every row, for processing; otherwise
            they are only in the first row of each.
    """
    printed = {""}
    for result in claims:
        head: tuple[object, ...] = (result["consumer"], result.get("outcome", "held"))
        head = (*head, seconds(result.get("expires_at")))
        reason = str(result["error"]["detail"]).strip() if "error" in result else ""
        allocations = result.get("allocations", {})
        for provider, resources in holdings(allocations) if allocations else [(None, None)]:
            yield *head, provider, resources, reason if everywhere or reason not in printed else ""
            printed.add(reason)
            if not everywhere:
                head = ("",) * len(head)


def lines(document: Document, style: Style, before: Sequence[Document] = ()) -> Iterator[str]:
    """Yield the lines for a response to POST /v1/claims.

    Args:
        document: The response.
        style: The style of the lines.
        before: The claims before a move, which contain the names of the providers that it releases.
    """
    outcomes = results(document)
    refused = [result for result in outcomes if result["outcome"] == _REFUSED]
    if "dry_run" in document:
        yield _DRY
    if len(outcomes) > 1:
        summary = f"{len(outcomes) - len(refused)} of {len(outcomes)} claims were granted."
        yield style.bad(summary) if refused else style.good(summary)
    yield from table(COLUMNS, list(rows(outcomes)), style, bad=lambda row: row[1] == _REFUSED)
    yield from _relaxations(refused, style)
    yield from _room(document.get("room", {}), _names([*before, *outcomes]), style)


def claim_lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines for the document of one claim."""
    yield from table(COLUMNS, list(rows([document])), style)


def released_rows(document: Document) -> Iterator[tuple[str, str]]:
    """Yield a row for each released consumer, and for each named consumer that held nothing."""
    yield from ((uuid, "released") for uuid in document["released"])
    yield from ((uuid, "missing") for uuid in document["missing"])


def released_lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines for the document of a release."""
    count = len(document["released"])
    subject, verb = ("consumer", "is") if count == 1 else ("consumers", "are")
    if document["dry_run"]:
        yield _DRY
        verb = "would be"
    yield f"{count} {subject} {verb} released."
    yield from table(RELEASED, list(released_rows(document)), style)
    if not document["complete"]:
        yield "More consumers meet the conditions."


def body_of(document: Document) -> Document:
    """Return the document, or the document shown by a dry run."""
    body: Document = document["dry_run"]["body"] if "dry_run" in document else document
    return body


def _relaxations(refused: Sequence[Document], style: Style) -> Iterator[str]:
    """Yield the lines for the relaxations: changes that would give refused queries candidates."""
    changes = [change for result in refused for change in result.get("explanation", {}).get("relaxations", ())]
    rows = [
        (change["text"], f"{change['found']}{'+' if change.get('limited') else ''}", change["query"])
        for change in changes
    ]
    if rows:
        yield ""
        yield style.dim("What would help:")
        yield from table(("change", "candidates", "query"), rows, style)


def _names(claims: Sequence[Document]) -> dict[str, str]:
    """Return the names of the providers in claims, by uuid."""
    allocations = [result.get("allocations", {}) for result in claims]
    return {uuid: name for group in allocations for uuid, (name, _) in zip(group, holdings(group), strict=True)}


def _room(rooms: Mapping[str, Document], names: Mapping[str, str], style: Style) -> Iterator[str]:
    rows = [
        (names.get(uuid, uuid), resource_class, room["used"], room["capacity"], room["free"])
        for uuid, by_class in rooms.items()
        for resource_class, room in by_class.items()
    ]
    if rows:
        yield ""
        yield style.dim("Free capacity afterwards:")
        yield from table(("provider", "class", "used", "capacity", "free"), rows, style)
