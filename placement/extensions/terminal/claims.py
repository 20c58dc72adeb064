"""placement-ask claim, extend and release: what was claimed where, what was refused and why (docs: ask)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.extensions.terminal import explain
from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import seconds, table

Document = Mapping[str, Any]
#: The columns of ``facts``.
FACTS = ("consumer", "outcome", "until", "provider", "resources", "why")
_HEADER = FACTS[:-1]
_REFUSED = "refused"
_DRY = "Dry run: nothing was written."


def results(document: Document) -> list[Document]:
    """Return the results of a reply to POST /v1/claims, or of that of a dry run."""
    found: list[Document] = body_of(document)["results"]
    return found


def granted(document: Document) -> bool:
    """Whether every request was granted."""
    return all(result["outcome"] != _REFUSED for result in results(document))


def facts(found: Sequence[Document]) -> Iterator[tuple[object, ...]]:
    """Yield rows for programs: one for each provider that a consumer holds something of, one for each refusal."""
    for result in found:
        for row in _rows(result, everywhere=True):
            yield *row, _why(result)


def lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines that show a reply to POST /v1/claims."""
    found = results(document)
    refused = [result for result in found if result["outcome"] == _REFUSED]
    if "dry_run" in document:
        yield _DRY
    if len(found) > 1:
        summary = f"{len(found) - len(refused)} of {len(found)} requests are granted."
        yield style.bad(summary) if refused else style.good(summary)
    rows = [row for result in found for row in _rows(result)]
    yield from table(_HEADER, rows, style, bad=lambda row: row[1] == _REFUSED)
    if refused:
        yield from _refusals(refused, style)
    yield from _room(document.get("room", {}), _names(found), style)


def claim_lines(document: Document, style: Style) -> Iterator[str]:
    """Yield the lines that show the document of one claim."""
    yield from table(_HEADER, list(_rows(document)), style)


#: The columns of ``released``.
RELEASED = ("consumer", "outcome")


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


def _rows(result: Document, *, everywhere: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield a row for each provider; with ``everywhere`` every row says which consumer it is, else the first does."""
    known: tuple[object, ...] = (result["consumer"], result.get("outcome", "held"), seconds(result.get("expires_at")))
    for uuid, held in result.get("allocations", {}).items() or [(None, None)]:
        resources = held and ", ".join(f"{amount} {name}" for name, amount in held["resources"].items())
        yield *known, held and (held.get("name") or uuid), resources
        if not everywhere:
            known = ("",) * len(known)


def _why(result: Document) -> str:
    return str(result["error"]["detail"]).strip() if "error" in result else ""


def _refusals(refused: Sequence[Document], style: Style) -> Iterator[str]:
    """Yield why requests are refused, each reason once, and what would help."""
    yield ""
    yield style.dim("Why:")
    reasons = Counter(map(_why, refused))
    yield from table(("requests", "reason"), [(count, reason) for reason, count in reasons.items()], style)
    relaxations = [each for result in refused for each in result.get("explanation", {}).get("relaxations", ())]
    if relaxations:
        yield ""
        yield style.dim("What would help:")
        yield from explain.relaxations(relaxations, style)


def _names(found: Sequence[Document]) -> dict[str, str]:
    """Return the names of the providers that results mention, by uuid."""
    held = [(uuid, of.get("name")) for result in found for uuid, of in result.get("allocations", {}).items()]
    return {uuid: name for uuid, name in held if name}


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
