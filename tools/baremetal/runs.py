"""Runs of requests on both services, and shrinking of runs that show a difference."""

from __future__ import annotations

import collections
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tools.baremetal import node_requests, replies, requests
from tools.baremetal.known import DIVERGENCES
from tools.baremetal.servers import Reply, Request, Server
from tools.baremetal.world import World

assert node_requests  # registers its requests

#: Maximum number of attempts of B to choose the same node as A among equal nodes; after that, it is a difference.
_MAX_CHOICES = 100


@dataclass(frozen=True)
class Difference:
    """The difference between the responses to a request."""

    request: Request
    lines: list[str]
    replies: tuple[Reply, Reply]

    @property
    def kind(self) -> str:
        """The place of the first difference; shorter runs with the same place count as equivalent."""
        return self.lines[0].partition(":")[0]


class Pair:
    """Two services that get the same requests.

    Attributes:
        alike: Whether both are the original, so that no difference is intentional.
        sentences: Whether the messages of errors are compared.
        used: The titles of the intentional differences that occurred.
        last: A's last response.
        counts: The number of A's responses by method, route and status.
    """

    last: Reply

    def __init__(self, a: Server, b: Server, *, alike: bool = False, sentences: bool = False) -> None:
        self.a, self.b, self.alike, self.sentences = a, b, alike, sentences
        self.used: set[str] = set()
        self.counts: collections.Counter[tuple[str, str, int]] = collections.Counter()

    def exchange(self, request: Request) -> Difference | None:
        """Send a request to both services, wait for its background work, and compare the responses."""
        pair = self.a.send(request), self.b.send(request)
        self.last = pair[0]
        kind = "/".join("*" if number == 1 else part for number, part in enumerate(request.route[:3]))
        self.counts[request.method, f"/{kind}", pair[0].status] += 1
        outcome_a, outcome_b = self.a.finish(request, pair[0]), self.b.finish(request, pair[1])
        if request.allocates and outcome_a and outcome_b:
            lines, outcome_b = self._choose_alike(request, outcome_a, outcome_b)
            if lines:
                return Difference(request, lines, pair)
        a, b = replies.comparable(pair[0], self.a), replies.comparable(pair[1], self.b)
        a["outcome"], b["outcome"] = replies.plain(outcome_a, self.a), replies.plain(outcome_b, self.b)
        lines = self._compare(request, a, b)
        if request.allocates and not a["status"] == b["status"] == 201:
            self._remove_leftovers()
        return Difference(request, lines, pair) if lines else None

    def _compare(self, request: Request, a: replies.Comparable, b: replies.Comparable) -> list[str]:
        if not self.sentences:
            replies.without_sentences(request, a, b)
        if not self.alike:
            for divergence in DIVERGENCES:
                before = replies.differences(a, b)
                if not before:
                    break
                divergence.overlook(request, a, b)
                if replies.differences(a, b) != before:
                    self.used.add(divergence.title)
        return replies.differences(a, b)

    def _choose_alike(self, request: Request, a: Any, b: Any) -> tuple[list[str], Any]:
        """Repeat the allocation on B until it gets the same node as A: both choose at random among equal nodes.

        Returns:
            The lines of a difference, and the allocation on B.
        """
        preferred = self._name_of(a["node_uuid"]) == a["name"] is not None
        touched: set[str] = set()
        for _ in range(_MAX_CHOICES):
            target = replies.plain(a["node_uuid"], self.a)
            chosen = replies.plain(b["node_uuid"], self.b)
            if None in (target, chosen) or target == chosen:
                break
            if preferred or self._name_of(a["node_uuid"], node_of_b=b["node_uuid"]) == a["name"] is not None:
                return [f"choice: A={target} B={chosen}, and one has the name of the allocation"], b
            touched.add(chosen)
            self.b.send(Request("DELETE", f"/v1/allocations/{b['uuid']}"))
            repetition = Request("POST", request.path, request.body, request.version, request.headers, request.makes)
            b = self.b.finish(repetition, self.b.send(repetition))
            if b is None:
                return ["choice: B refuses an allocation that it accepted before"], b
        else:
            return [f"choice: A={target}, which B does not choose in {_MAX_CHOICES} attempts"], b
        for node in touched:
            self._restore(node)
        return [], b

    def _name_of(self, node_of_a: str | None, node_of_b: str | None = None) -> str | None:
        server, uuid = (self.b, node_of_b) if node_of_b else (self.a, node_of_a)
        document = server.get(f"/v1/nodes/{uuid}?fields=name") if uuid else None
        return document["name"] if document else None

    def _restore(self, node: str) -> None:
        """Set the ``instance_info`` of a node of B, which was allocated temporarily, to its value on A."""
        info = self.a.get(self.a.substitute(f"/v1/nodes/{node}?fields=instance_info"))
        if info:
            change = [{"op": "add", "path": "/instance_info", "value": info["instance_info"]}]
            for server in (self.a, self.b):
                server.send(Request("PATCH", f"/v1/nodes/{node}", change))

    def _remove_leftovers(self) -> None:
        """Delete allocations that exist in only one service: the original keeps records of refused allocations."""
        records = [{replies.plain(uuid, server): uuid for uuid in server.allocations()} for server in (self.a, self.b)]
        for server, uuids, other_uuids in ((self.a, *records), (self.b, *reversed(records))):
            if server is self.a or self.alike:
                for uuid in uuids.keys() - other_uuids.keys():
                    server.send(Request("DELETE", f"/v1/allocations/{uuids[uuid]}"))

    def wipe(self) -> None:
        """Empty both services."""
        self.a.wipe()
        self.b.wipe()


def play(pair: Pair, sequence: Sequence[Request]) -> Difference | None:
    """Return the first difference of a sequence of requests on empty services."""
    pair.wipe()
    for request in sequence:
        if difference := pair.exchange(request):
            return difference
    return None


def random_run(pair: Pair, seed: int, steps: int) -> tuple[list[Request], Difference | None]:
    """Play a random run on empty services; return its requests and the difference at the last one, if any."""
    world = World(seed, lambda path: pair.a.get(pair.a.substitute(path)))
    pair.wipe()
    run: list[Request] = []
    pending = requests.first_requests(world)

    for _ in range(len(pending) + steps):
        request = pending.pop(0) if pending else requests.random_request(world)
        run.append(request)
        if difference := pair.exchange(request):
            return run, difference
        world.note(request, pair.last)
    return run, None


def shortest(sequence: Sequence[Request], fails: Callable[[list[Request]], bool], seconds: float) -> list[Request]:
    """Return a shorter sequence with the same last request that still fails.

    Remove all requests of a method, then larger and smaller pieces as in delta debugging (Zeller and Hildebrandt 2002).
    Finally remove pairs of requests, such as the creation and the deletion of an object.

    Args:
        sequence: A sequence that fails.
        fails: A function that returns whether a sequence shows the difference at its last request.
        seconds: The time limit; the shortest sequence so far is returned.
    """
    *needed, last = sequence
    end = time.monotonic() + seconds

    def still(trial: list[Request]) -> bool:
        return time.monotonic() < end and fails([*trial, last])

    for method in ("GET", "HEAD", "PATCH", "DELETE"):  # reads hardly ever matter
        trial = [request for request in needed if request.method != method]
        needed = trial if len(trial) < len(needed) and still(trial) else needed
    size = len(needed)
    while size:
        shorter = _without_pieces(needed, size, still)
        size = 1 if size == 1 and len(shorter) < len(needed) else size // 2
        needed = shorter
    for pair in itertools.combinations(range(len(needed)), 2):
        trial = [request for number, request in enumerate(needed) if number not in pair]
        if still(trial):
            return shortest([*trial, last], fails, end - time.monotonic())
    return [*needed, last]


def _without_pieces(needed: list[Request], size: int, still: Callable[[list[Request]], bool]) -> list[Request]:
    """Return the requests without the pieces of this size that are not needed for the failure."""
    at = 0
    while at < len(needed):
        trial = needed[:at] + needed[at + size :]
        if still(trial):
            needed = trial
        else:
            at += size
    return needed


def shrunk(pair: Pair, sequence: Sequence[Request], difference: Difference, seconds: float) -> list[Request]:
    """Return the shortest run found with the same difference at its last request."""

    def fails(trial: list[Request]) -> bool:
        trial_difference = play(pair, trial)
        return (
            trial_difference is not None
            and trial_difference.request is trial[-1]
            and trial_difference.kind == difference.kind
        )

    return shortest(sequence, fails, seconds)
