"""Many concurrent clients of one service; requests and responses are recorded and checked afterwards."""

from __future__ import annotations

import collections
import contextlib
import http.client
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests import caller
from tests.caller import Answer

#: No response: the connection was lost, or could not be opened.
NONE = Answer(0, None)


@contextlib.contextmanager
def clients(work: Callable[[threading.Event], None], count: int = 4) -> Iterator[None]:
    """Run the work in threads, which must end once the event is set: when the block ends."""
    is_done = threading.Event()
    threads = [threading.Thread(target=work, args=[is_done]) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_done.set()
        for thread in threads:
            thread.join()


class Call(NamedTuple):
    """A request."""

    method: str
    path: str
    body: Any = None
    #: The minor version; None for the newest version of the API.
    minor: int | None = None


@dataclass(frozen=True)
class Event:
    """A request with its response, and the times of both."""

    call: Call
    answer: Answer
    began: float
    ended: float


class Storm:
    """Clients of one service."""

    def __init__(self, url: str, identity: Mapping[str, str] = caller.ADMIN) -> None:
        self._ask = caller.over_http(url, identity)
        self.history: list[Event] = []

    def ask(self, method: str, path: str, body: Any = None, minor: int | None = None) -> Answer:
        """Return the response to a request, or NONE."""
        began = time.monotonic()
        try:
            answer = self._ask(method, path, minor, body)
        except (OSError, http.client.HTTPException, ValueError):  # ValueError: a truncated body
            answer = NONE
        self.history.append(Event(Call(method, path, body, minor), answer, began, time.monotonic()))
        return answer

    def together(self, *works: Call | Callable[[], Any]) -> list[Any]:
        """Return the responses to concurrent requests, or the results of functions in their place."""
        barrier, results = threading.Barrier(len(works)), [None] * len(works)

        def run(place: int, work: Call | Callable[[], Any]) -> None:
            barrier.wait()
            results[place] = self.ask(*work) if isinstance(work, Call) else work()

        threads = [threading.Thread(target=run, args=(place, work)) for place, work in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    # --- state ---

    def provider(self, parent: str | None = None, **totals: int) -> str:
        """Create a provider with these inventories."""
        name = str(uuid.uuid4())
        body = {"name": name, "uuid": name} | ({"parent_provider_uuid": parent} if parent else {})
        assert self.ask("POST", "/resource_providers", body).status == 200
        if totals:
            assert self.ask(*stock(name, 0, **totals)).status == 200
        return name

    def get(self, path: str) -> Any:
        """Return the document of a GET, which must succeed."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def generation(self, provider: str) -> int:
        generation: int = self.get(f"/resource_providers/{provider}")["generation"]
        return generation

    def usage(self, provider: str, resource_class: str = "VCPU") -> int:
        usage: int = self.get(f"/resource_providers/{provider}/usages")["usages"][resource_class]
        return usage

    def allocations(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return the allocations of a consumer: provider -> class -> amount."""
        allocations = self.get(f"/allocations/{consumer}")["allocations"]
        return {provider: entry["resources"] for provider, entry in allocations.items()}


def new() -> str:
    return str(uuid.uuid4())


def name(prefix: str) -> str:
    """Return a new name for a class or a trait."""
    return f"CUSTOM_{prefix}_{uuid.uuid4().hex.upper()}"


def stock(provider: str, generation: int, **totals: int) -> Call:
    inventories = {resource_class: {"total": total} for resource_class, total in totals.items()}
    body = {"resource_provider_generation": generation, "inventories": inventories}
    return Call("PUT", f"/resource_providers/{provider}/inventories", body)


def holding(
    resources: Mapping[str, Mapping[str, int]] | Iterable[str], generation: int | None = None, owner: str = "p"
) -> dict[str, Any]:
    """Return the body that claims resources by provider, or one VCPU of each provider if only providers are named."""
    amounts = resources if isinstance(resources, Mapping) else {provider: {"VCPU": 1} for provider in resources}
    return {
        "allocations": {provider: {"resources": dict(by_class)} for provider, by_class in amounts.items()},
        "project_id": owner,
        "user_id": owner,
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def claim(resources: Any, generation: int | None = None, consumer: str | None = None, **more: Any) -> Call:
    """Return a call that replaces the allocations of a consumer, by default a new one, by these resources."""
    return Call("PUT", f"/allocations/{consumer or new()}", holding(resources, generation, **more))


def statuses(answers: Sequence[Answer]) -> dict[int, int]:
    """Return the number of responses by status."""
    return dict(collections.Counter(answer.status for answer in answers))
