"""What happened in one run: the calls of its clients, what was broken meanwhile, and the state at its end.

A file has one JSON document on each line: first the run's description, ``{"run": {...}}``, then operations and events
in the order in which they ended.  All times are nanoseconds of one monotonic clock, from the beginning of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

#: The process of the reads after the run, when everything is healed and no client runs.
FINAL = -1
#: Seconds after most events in which requests may be refused: the longest time until writes are answered again, that
#: of a database or a node, and the length of a request that began within it.
AFTERMATH = 10.0
#: 503 with one of these in its detail says that nothing was changed; with any other, a change may be in effect.
_NOT_BEGUN = (
    "The database cannot be reached.",
    "The database does not answer the requests that wait for it.",
    "The database refuses the service.",
    "The database lacks tables of this service.",
)
#: Beginnings of the paths of calls that the service carries out in several transactions.
_IN_SEVERAL_TRANSACTIONS = ("/v1/claims",)


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of one client.

    Attributes:
        number: Its place in the order in which the calls began; unique.
        process: The client; it has one call at a time, but for those that are open.
        ended: When the reply was there, or the connection was refused; None: there was no reply, or one that leaves
            open what became of the call.
        service: Which of the cluster's services was called.
        status: Of the reply; 0: there was none.
        reply: The body of the reply; text if it is no JSON.
        note: What the workload says about it, for its own invariants.
    """

    number: int
    process: int
    began: int
    ended: int | None
    service: int
    method: str
    path: str
    minor: int | None
    body: Any = None
    status: int = 0
    reply: Any = None
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether it is unknown if, and when, the call takes effect: at any time after it began, or never."""
        return self.ended is None

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    @property
    def answered(self) -> bool:
        """Whether the service answered, and not that it is away; a proxy in its place has no JSON."""
        return self.status not in (0, 503) and not (self.status in (502, 504) and isinstance(self.reply, str))

    @property
    def code(self) -> str:
        """The code of the first error of the reply; empty if there is none."""
        return str(self._error.get("code", ""))

    @property
    def detail(self) -> str:
        """The text of the first error of the reply; empty if there is none."""
        return str(self._error.get("detail", ""))

    @property
    def _error(self) -> Mapping[str, Any]:
        errors = self.reply.get("errors") if isinstance(self.reply, dict) else None
        return errors[0] if errors else {}


class Lasting(Protocol):
    """What begins and, unless it is open, ends."""

    @property
    def began(self) -> int: ...

    @property
    def ended(self) -> int | None: ...


def overlap(first: Lasting, second: Lasting) -> bool:
    """Whether there is a time at which both may take effect: neither had ended when the other began."""
    return not (_ends_before(first, second) or _ends_before(second, first))


def _ends_before(first: Lasting, second: Lasting) -> bool:
    return first.ended is not None and first.ended <= second.began


def is_outcome_known(path: str, status: int, body: Any) -> bool:
    """Whether a reply says if the call took effect.

    A 5xx of a proxy, a 500 and no reply (0) do not; nor does a 503 to a call that the service carries out in several
    transactions, of which the first ones may be committed (docs: v1-claims-many).
    """
    if status == 503 and path.startswith(_IN_SEVERAL_TRANSACTIONS):
        return False
    if status == 503 and isinstance(body, dict) and body.get("errors"):
        return any(sentence in str(body["errors"][0].get("detail", "")) for sentence in _NOT_BEGUN)
    return 0 < status < 500


@dataclass(frozen=True, slots=True)
class Event:
    """What a nemesis did.

    Attributes:
        began: When the harm began.
        healed: When it was undone, so that a cluster that recovers can; None: never.
        loses_tail: Whether the last commits before ``healed`` may be lost, all from some commit on.
        aftermath: Seconds after ``healed`` in which requests may still be refused or have no reply.
        spares: From when on requests that begin are not lost, so that each has a reply that is no 5xx, whatever lasts
            until ``healed``; None: from the end of ``aftermath`` on.
        keeps_earlier: Whether what was acknowledged before ``began`` is never among what is lost.
    """

    nemesis: str
    began: int
    healed: int | None
    loses_tail: bool = False
    detail: Mapping[str, Any] = field(default_factory=dict)
    aftermath: float = AFTERMATH
    spares: int | None = None
    keeps_earlier: bool = False


@dataclass(slots=True)
class History:
    """A run: its description, its operations in the order in which they began, and its events."""

    run: Mapping[str, Any]
    operations: list[Operation]
    events: list[Event]
    #: What was read from the database by SQL after the run, by the name of the check that reads it.
    final: Mapping[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the history to a file."""
        with path.open("w") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in self._lines())

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        yield {"run": dict(self.run)}
        yield from ({"operation": _without_defaults(asdict(operation))} for operation in self.operations)
        yield from ({"event": asdict(event)} for event in self.events)
        yield {"final": dict(self.final)}

    @classmethod
    def read(cls, path: Path) -> History:
        """Read a history from a file; raises ValueError for other files."""
        run, operations, events, final = {}, [], [], {}
        with path.open() as file:
            for line in file:
                [(kind, content)] = json.loads(line).items()
                match kind:
                    case "run":
                        run = content
                    case "operation":
                        operations.append(Operation(**content))
                    case "event":
                        events.append(Event(**content))
                    case "final":
                        final = content
                    case _:
                        raise ValueError(f"{path}: a line is about {kind!r}, which no history has")
        return cls(run, sorted(operations, key=lambda operation: operation.number), events, final)

    def with_operations(self, operations: Iterable[Operation]) -> History:
        """Return the same run with some of its operations."""
        return History(self.run, list(operations), self.events, self.final)


def _without_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value or name not in ("body", "reply", "note")}
