"""Operations and events as short texts for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jepsen.history import RUNNER, Event, Operation

_UUID = re.compile(r"([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Keys omitted from the texts, because they rarely explain a violation.
_OMITTED = frozenset({"project_id", "user_id", "consumer_type", "links", "mappings", "request_id"})


def client_of(process: int) -> str:
    """Return the name of a process of a history."""
    return "the runner" if process == RUNNER else f"client {process}"


def call_of(operation: Operation) -> str:
    """Return the method and the path, with shortened uuids."""
    return f"{operation.method} {shorten_uuids(operation.path)}"


def body_of(operation: Operation) -> str:
    """Return the body as text; empty if there is none."""
    return compact(operation.body)


def answer_of(operation: Operation) -> str:
    """Return the response in one line: the status and its content."""
    if operation.status == 0:
        return "no response" if operation.is_open else "no connection"
    reason = operation.code.removeprefix("placement.") or operation.detail
    return f"{operation.status} {shorten_uuids(reason) or compact(operation.reply)}".strip()


def line_of(operation: Operation) -> str:
    """Return the operation in one line, with times in seconds."""
    end = "open   " if operation.ended is None else f"{operation.ended / 1e9:.4f}"
    body_text = f" {body_text}" if (body_text := body_of(operation)) else ""
    return (
        f"#{operation.number} {operation.began / 1e9:.4f}-{end} {client_of(operation.process)}, service "
        f"{operation.service}: {call_of(operation)}{body_text} -> {answer_of(operation)}"
    )


def name_of(event: Event) -> str:
    """Return the name of the nemesis, and whether commits may be lost."""
    return f"{event.nemesis} (may lose a tail)" if event.loses_tail else event.nemesis


def shorten_uuids(text: str) -> str:
    """Return the text with each uuid cut to its first eight characters."""
    return _UUID.sub(r"\1", text)


def compact(document: Any) -> str:
    """Return a JSON document as a short text: allocations as amounts at providers, without the omitted keys."""
    if document is None:
        return ""
    return shorten_uuids(", ".join(_pieces(document)) if isinstance(document, Mapping) else _value(document))


def _pieces(document: Mapping[str, Any]) -> Iterator[str]:
    for key, value in document.items():
        if key in _OMITTED:
            continue
        if isinstance(value, Mapping) and isinstance(value.get("resources"), Mapping):
            amounts = " ".join(f"{name} {amount}" for name, amount in value["resources"].items())
            yield f"{amounts} at {key}"
        elif key == "allocations" and isinstance(value, Mapping):
            yield from _pieces(value) if value else ["nothing"]
        elif key == "consumer_generation":
            yield f"generation {'null' if value is None else value}"
        elif isinstance(value, Mapping):
            yield f"{key}: {_value(value)}"
        else:
            yield f"{key} {_value(value)}"


def _value(value: Any) -> str:
    match value:
        case Mapping():
            return f"{{{', '.join(_pieces(value))}}}"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case str():
            return value
    return json.dumps(value)
