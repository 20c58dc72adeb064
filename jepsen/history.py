"""The record of a run: operations of the clients, events of the nemeses, and the final state.

A file contains one JSON document per line: the description of the run, ``{"run": {...}}``, then operations and events
in the order in which they ended.  Times are nanoseconds of one monotonic clock since the start of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

#: Process of the runner, which prepares the objects before the clients begin, and reads them after the last nemesis.
RUNNER = -1
#: Seconds after most events in which requests may be refused: the longest recovery of a database or a node, plus the
#: duration of a request that began before.
AFTERMATH = 10.0
#: Details of a 503 that guarantee that nothing was changed; after another detail, a change may be in effect.
_NOT_BEGUN = (
    "The database cannot be reached.",
    "The database is not responding to earlier requests.",
    "The database refuses the service.",
    "The database lacks tables of this service.",
)
#: Path prefixes of requests that the service carries out in several transactions.
_IN_SEVERAL_TRANSACTIONS = ("/v1/claims",)


@dataclass(frozen=True, slots=True)
class Operation:
    """A request of a client with its response.

    Attributes:
        number: Position in the order in which operations began; unique.
        process: The client; it runs one operation at a time, apart from open ones.
        ended: Time of the response, or of the refused connection; None: there was no response, or one that leaves the
            outcome unknown.
        service: Number of the service in the cluster.
        status: HTTP status; 0: no response.
        reply: Body of the response; text if it is not JSON.
        note: Remarks of the workload, for its own invariants.
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
        """Whether it is unknown if and when the operation takes effect: at any time after it began, or never."""
        return self.ended is None

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    @property
    def answered(self) -> bool:
        """Whether the service itself responded with anything but "unavailable"; the errors of a proxy are not JSON."""
        return self.status not in (0, 503) and not (self.status in (502, 504) and isinstance(self.reply, str))

    @property
    def code(self) -> str:
        """Code of the first error in the response; empty if there is none."""
        return str(self._error.get("code", ""))

    @property
    def detail(self) -> str:
        """Text of the first error in the response; empty if there is none."""
        return str(self._error.get("detail", ""))

    @property
    def _error(self) -> Mapping[str, Any]:
        errors = self.reply.get("errors") if isinstance(self.reply, dict) else None
        return errors[0] if errors else {}


class Interval(Protocol):
    """An interval of time; an open one has no end."""

    @property
    def began(self) -> int: ...

    @property
    def ended(self) -> int | None: ...


def overlap(first: Interval, second: Interval) -> bool:
    """Whether both may take effect at the same time: neither had ended when the other began."""
    return not (_ends_before(first, second) or _ends_before(second, first))


def _ends_before(first: Interval, second: Interval) -> bool:
    return first.ended is not None and first.ended <= second.began


def is_outcome_known(path: str, status: int, body: Any) -> bool:
    """Whether a response says if the operation took effect.

    The outcome is unknown after a 500, a 5xx of a proxy, or no response (0); also after a 503 if the service carries
    out the request in several transactions, because the first ones may be committed (docs: v1-claims-many).
    """
    if status == 503 and path.startswith(_IN_SEVERAL_TRANSACTIONS):
        return False
    if status == 503 and isinstance(body, dict) and body.get("errors"):
        return any(sentence in str(body["errors"][0].get("detail", "")) for sentence in _NOT_BEGUN)
    return 0 < status < 500


@dataclass(frozen=True, slots=True)
class Event:
    """One occurrence of a nemesis.

    Attributes:
        began: Start of the harm.
        healed: Time at which the harm was undone, so that the cluster can recover; None: never.
        loses_tail: Whether all commits after some commit before ``healed`` may be lost.
        aftermath: Seconds after ``healed`` in which requests may still be refused or get no response.
        spares: Time from which new requests are safe: each gets a response other than 5xx, even before ``healed``;
            None: the end of ``aftermath``.
        keeps_earlier: Whether writes acknowledged before ``began`` are never lost.
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
    #: Final state of the database and the workers, by key (final_state).
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
        """Read a history from a file; raise ValueError if the file is invalid."""
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
                        raise ValueError(f"{path}: invalid line of kind {kind!r}")
        return cls(run, sorted(operations, key=lambda operation: operation.number), events, final)

    def with_operations(self, operations: Iterable[Operation]) -> History:
        """Return the same run with only these operations."""
        return History(self.run, list(operations), self.events, self.final)


def _without_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value or name not in ("body", "reply", "note")}
