"""placement-ask claim, extend and release: what was claimed where, what was refused and why (docs: ask)."""

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
    """Return the results of a reply to POST /v1/claims, or of that of a dry run."""
    found: list[Document] = body_of(document)["results"]
    return found


def granted(document: Document) -> bool:
    """Whether every request was granted."""
    return all(result["outcome"] != _REFUSED for result in results(document))


def rows(found: Sequence[Document], *, everywhere: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield a row for each provider that a consumer holds something of, and one for each refusal.

    Args:
        everywhere: Whether every row says which consumer it is, and every refusal why, for programs; otherwise the
            first of a consumer does, and the first for that reason.
    """
    said = {""}
    for result in found:
        known: tuple[object, ...] = (result["consumer"], result.get("outcome", "held"))
        known = (*known, seconds(result.get("expires_at")))
        why = str(result["error"]["detail"]).strip() if "error" in result else ""
        held = result.get("allocations", {})
        for provider, resources in holdings(held) if held else [(None, None)]:
            yield *known, provider, resources, why if everywhere or why not in said else ""
            said.add(why)
            if not everywhere:
                known = ("",) * len(known)


def lines(document: Document, style: Style, before: Sequence[Document] = ()) -> Iterator[str]:
    """Yield the lines that show a reply to POST /v1/claims.

    Args:
        document: The reply.
        style: How they are shown.
        before: The claims before the request; they have the names of the providers it would release.
    """
    found = results(document)
    refused = [result for result in found if result["outcome"] == _REFUSED]
    if "dry_run" in document:
        yield _DRY
    if len(found) > 1:
        summary = f"{len(found) - len(refused)} of {len(found)} requests are granted."
        yield style.bad(summary) if refused else style.good(summary)
    yield from table(COLUMNS, list(rows(found)), style, bad=lambda row: row[1] == _REFUSED)
    yield from _relaxations(refused, style)
    yield from _room(document.get("room", {}), _names([*before, *found]), style)


def claim_lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines that show the document of one claim."""
    yield from table(COLUMNS, list(rows([document])), style)


def released(document: Document) -> Iterator[tuple[str, str]]:
    """Yield consumers that held something until now, and those that were named and held nothing."""
    yield from ((uuid, "released") for uuid in document["released"])
    yield from ((uuid, "missing") for uuid in document["missing"])


def released_lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines that show which consumers hold nothing any more."""
    count = len(document["released"])
    subject, verb = ("consumer", "is") if count == 1 else ("consumers", "are")
    if document["dry_run"]:
        yield _DRY
        verb = "would be"
    yield f"{count} {subject} {verb} released."
    yield from table(RELEASED, list(released(document)), style)
    if not document["complete"]:
        yield "More consumers meet the conditions."


def body_of(document: Document) -> Document:
    """Return the document itself; of a dry run, that of the reply which it shows."""
    body: Document = document["dry_run"]["body"] if "dry_run" in document else document
    return body


def _relaxations(refused: Sequence[Document], style: Style) -> Iterator[str]:
    """Yield changes of the queries that would be enough."""
    found = [each for result in refused for each in result.get("explanation", {}).get("relaxations", ())]
    rows = [(each["text"], f"{each['found']}{'+' if each.get('limited') else ''}", each["query"]) for each in found]
    if rows:
        yield ""
        yield style.dim("What would help:")
        yield from table(("change", "candidates", "query"), rows, style)


def _names(found: Sequence[Document]) -> dict[str, str]:
    """Return the names of the providers that results mention, by uuid."""
    allocations = [result.get("allocations", {}) for result in found]
    return {uuid: name for held in allocations for uuid, (name, _) in zip(held, holdings(held), strict=True)}


def _room(rooms: Mapping[str, Document], names: Mapping[str, str], style: Style) -> Iterator[str]:
    rows = [
        (names.get(uuid, uuid), resource_class, room["used"], room["capacity"], room["free"])
        for uuid, of in rooms.items()
        for resource_class, room in of.items()
    ]
    if rows:
        yield ""
        yield style.dim("The room after it:")
        yield from table(("provider", "class", "used", "capacity", "free"), rows, style)
