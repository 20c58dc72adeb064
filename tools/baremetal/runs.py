"""A run of calls on both services, and the shortest run with the same difference."""

from __future__ import annotations

import collections
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tools.baremetal import calls, node_calls, replies
from tools.baremetal.known import DIVERGENCES
from tools.baremetal.servers import Call, Reply, Server
from tools.baremetal.world import World

assert node_calls  # registers its calls

#: How often B may choose another node than A among equals, before it counts as a difference.
_CHOICES = 100


@dataclass(frozen=True)
class Difference:
    """What differs in the replies to a call."""

    call: Call
    lines: list[str]
    replies: tuple[Reply, Reply]

    @property
    def kind(self) -> str:
        """The place of the first difference: shorter runs that differ there have the same difference."""
        return self.lines[0].partition(":")[0]


class Pair:
    """Two services that get the same calls.

    Attributes:
        alike: Whether both are the original: then no difference is on purpose.
        sentences: Whether the sentences of errors are compared.
        used: The titles of the differences on purpose that were met.
        last: A's last reply.
        counts: How often A answered a kind of call with a status.
    """

    last: Reply

    def __init__(self, a: Server, b: Server, *, alike: bool = False, sentences: bool = False) -> None:
        self.a, self.b, self.alike, self.sentences = a, b, alike, sentences
        self.used: set[str] = set()
        self.counts: collections.Counter[tuple[str, str, int]] = collections.Counter()

    def exchange(self, call: Call) -> Difference | None:
        """Send a call to both, wait until its work has ended, and compare."""
        answers = self.a.call(call), self.b.call(call)
        self.last = answers[0]
        kind = "/".join("*" if number == 1 else part for number, part in enumerate(call.route[:3]))
        self.counts[call.method, f"/{kind}", answers[0].status] += 1
        outcome_a, outcome_b = self.a.finish(call, answers[0]), self.b.finish(call, answers[1])
        if call.allocates and outcome_a and outcome_b:
            lines, outcome_b = self._choose_alike(call, outcome_a, outcome_b)
            if lines:
                return Difference(call, lines, answers)
        a, b = replies.seen(answers[0], self.a), replies.seen(answers[1], self.b)
        a["outcome"], b["outcome"] = replies.plain(outcome_a, self.a), replies.plain(outcome_b, self.b)
        lines = self._compared(call, a, b)
        if call.allocates and not a["status"] == b["status"] == 201:
            self._remove_leftovers()
        return Difference(call, lines, answers) if lines else None

    def _compared(self, call: Call, a: replies.Seen, b: replies.Seen) -> list[str]:
        if not self.sentences:
            replies.without_sentences(call, a, b)
        if not self.alike:
            for divergence in DIVERGENCES:
                before = replies.differences(a, b)
                if not before:
                    break
                divergence.overlook(call, a, b)
                if replies.differences(a, b) != before:
                    self.used.add(divergence.title)
        return replies.differences(a, b)

    def _choose_alike(self, call: Call, a: Any, b: Any) -> tuple[list[str], Any]:
        """Repeat the allocation on B until it gets the node that A got, because both choose at random among equals.

        Returns:
            The lines of a difference, and the allocation on B.
        """
        preferred = self._name_of(a["node_uuid"]) == a["name"] is not None
        touched: set[str] = set()
        for _ in range(_CHOICES):
            target = replies.plain(a["node_uuid"], self.a)
            chosen = replies.plain(b["node_uuid"], self.b)
            if None in (target, chosen) or target == chosen:
                break
            if preferred or self._name_of(a["node_uuid"], of=b["node_uuid"]) == a["name"] is not None:
                return [f"choice: A={target} B={chosen}, and one has the name of the allocation"], b
            touched.add(chosen)
            self.b.call(Call("DELETE", f"/v1/allocations/{b['uuid']}"))
            again = Call("POST", call.path, call.body, call.version, call.headers, call.makes)
            b = self.b.finish(again, self.b.call(again))
            if b is None:
                return ["choice: B refuses an allocation that it accepted before"], b
        else:
            return [f"choice: A={target}, and B never chooses it in {_CHOICES} attempts"], b
        for node in touched:
            self._restore(node)
        return [], b

    def _name_of(self, node: str | None, of: str | None = None) -> str | None:
        server, uuid = (self.b, of) if of else (self.a, node)
        found = server.get(f"/v1/nodes/{uuid}?fields=name") if uuid else None
        return found["name"] if found else None

    def _restore(self, node: str) -> None:
        """Give a node of B, which had an allocation for a moment, the ``instance_info`` that it has on A."""
        info = self.a.get(self.a.put_in(f"/v1/nodes/{node}?fields=instance_info"))
        if info:
            change = [{"op": "add", "path": "/instance_info", "value": info["instance_info"]}]
            for server in (self.a, self.b):
                server.call(Call("PATCH", f"/v1/nodes/{node}", change))

    def _remove_leftovers(self) -> None:
        """Delete the records of refused allocations that the original keeps, and of those that only A has accepted."""
        records = [{replies.plain(uuid, server): uuid for uuid in server.allocations()} for server in (self.a, self.b)]
        for server, own, other in ((self.a, *records), (self.b, *reversed(records))):
            if server is self.a or self.alike:
                for uuid in own.keys() - other.keys():
                    server.call(Call("DELETE", f"/v1/allocations/{own[uuid]}"))

    def wipe(self) -> None:
        """Empty both services."""
        self.a.wipe()
        self.b.wipe()


def play(pair: Pair, sequence: Sequence[Call]) -> Difference | None:
    """Return the first difference of a sequence of calls on empty services."""
    pair.wipe()
    for call in sequence:
        if difference := pair.exchange(call):
            return difference
    return None


def random_run(pair: Pair, seed: int, steps: int) -> tuple[list[Call], Difference | None]:
    """Play a random run on empty services; return its calls, and the difference at the last one."""
    world = World(seed, lambda path: pair.a.get(pair.a.put_in(path)))
    pair.wipe()
    done: list[Call] = []
    waiting = calls.first_calls(world)

    for _ in range(len(waiting) + steps):
        call = waiting.pop(0) if waiting else calls.random_call(world)
        done.append(call)
        if difference := pair.exchange(call):
            return done, difference
        world.note(call, pair.last)
    return done, None


def shortest(sequence: Sequence[Call], fails: Callable[[list[Call]], bool], seconds: float) -> list[Call]:
    """Return a shorter sequence that still fails; its last call stays.

    It removes all calls of a method, then large pieces, then smaller ones, as delta debugging does (Zeller and
    Hildebrandt 2002), and at last any two calls: what makes an object, and what removes it.

    Args:
        fails: Whether a sequence shows the difference at its last call.
        seconds: When to stop, and return the shortest one so far.
    """
    *kept, last = sequence
    end = time.monotonic() + seconds

    def still(trial: list[Call]) -> bool:
        return time.monotonic() < end and fails([*trial, last])

    for method in ("GET", "HEAD", "PATCH", "DELETE"):  # reads hardly ever matter
        rest = [call for call in kept if call.method != method]
        kept = rest if len(rest) < len(kept) and still(rest) else kept
    size = len(kept)
    while size:
        shorter = _without_pieces(kept, size, still)
        size = 1 if size == 1 and len(shorter) < len(kept) else size // 2
        kept = shorter
    for pair in itertools.combinations(range(len(kept)), 2):
        rest = [call for number, call in enumerate(kept) if number not in pair]
        if still(rest):
            return shortest([*rest, last], fails, end - time.monotonic())
    return [*kept, last]


def _without_pieces(kept: list[Call], size: int, still: Callable[[list[Call]], bool]) -> list[Call]:
    """Return the calls without those pieces of a size, of which none is needed."""
    at = 0
    while at < len(kept):
        trial = kept[:at] + kept[at + size :]
        if still(trial):
            kept = trial
        else:
            at += size
    return kept


def shrunk(pair: Pair, sequence: Sequence[Call], difference: Difference, seconds: float) -> list[Call]:
    """Return the shortest run found with the same difference at its last call."""

    def fails(trial: list[Call]) -> bool:
        found = play(pair, trial)
        return found is not None and found.call is trial[-1] and found.kind == difference.kind

    return shortest(sequence, fails, seconds)
