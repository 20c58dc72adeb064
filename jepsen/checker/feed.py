"""The feed of changes at the end of a run: what lets every worker follow the database (docs/adr/0004).

Rows are kept for ``feed.RETENTION`` after their writer's next number, and those of writers that are not used for
``feed.LIFETIME``.  So a shorter run has all of its own, although some of earlier runs on the same cluster are deleted;
where clocks are moved, that may be otherwise.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jepsen.history import History
from jepsen.violation import Violation
from placement.db import feed as changes

#: By how much a reshape raises the generation of a provider in its one transaction, at most, where others raise by one.
_BY_RESHAPE = 3


def feed(history: History) -> list[Violation]:
    """Return gaps in the numbers of writers, and changes without a row."""
    rows: Sequence[Sequence[Any]] | None = history.final.get("feed")
    if rows is None:
        return []
    numbers: dict[int, set[int]] = defaultdict(set)
    for writer, number, _, _ in rows:
        numbers[writer].add(number)
    # The numbers that a database has lost are not used again: neither in this run, nor, if it was in an earlier one on
    # the same cluster, between the newest number of then and the first one of this run.
    lossy = any(event.loses_tail for event in history.events)
    before: Mapping[str, int] = history.run.get("newest", {})
    return [*(() if lossy else _gaps(numbers, before)), *_missing(history, rows, numbers)]


def _gaps(numbers: Mapping[int, set[int]], before: Mapping[str, int]) -> Iterator[Violation]:
    for writer, writer_numbers in numbers.items():
        known = {number for number in writer_numbers if number > before.get(str(abs(writer)), 0)}
        if not known:
            continue
        missing = set(range(min(known), max(known))) - known
        if missing:
            sentence = f"writer {writer} has {min(known)} to {max(known)} without {sorted(missing)[:5]}"
            yield Violation("feed numbers without gaps", sentence)


def _missing(history: History, rows: Sequence[Sequence[Any]], numbers: Mapping[int, set[int]]) -> Iterator[Violation]:
    earlier = _of_earlier_runs(history)
    newest_before = max((provider for provider, uuid, *_ in history.final["providers"] if uuid in earlier), default=0)
    # Of a writer that was ended, and of one whose old rows were deleted, rows are missing.
    deleted = any(writer < 0 or min(known) > 1 for writer, known in numbers.items())
    if deleted and not _has_rows_of_this_run(history, numbers):
        return
    count = Counter(provider for _, _, provider, _ in rows)
    kinds = defaultdict(set)
    for _, _, provider, kind in rows:
        kinds[provider].add(kind)
    reshapes, nodes = _reshapes(history), set(history.final["machines"]["nodes"])
    present = set()
    for provider, uuid, generation, _, _ in history.final["providers"]:
        present.add(provider)
        # Its creation leaves it at generation 0, and every transaction that raises it writes one row.
        least = 1 + generation - reshapes[uuid] * (_BY_RESHAPE - 1)
        # One transaction of the Bare Metal API may raise that of a node several times, and the reshapes of earlier runs
        # on the same cluster are not known.
        if uuid not in nodes | earlier and count[provider] < least:
            sentence = (
                f"provider {uuid} has generation {generation} by {count[provider]} rows, at least {least} expected"
            )
            yield Violation("a feed row for each change", sentence)
        if changes.SHAPE not in kinds[provider] and not (deleted and uuid in earlier):
            yield Violation("a feed row for each change", f"no row tells of the creation of provider {uuid}")
    for provider in kinds.keys() - present - {changes.NO_PROVIDER}:
        # Ids ascend; without any of an earlier run it is not known which are of this one.
        is_of_this_run = not deleted or 0 < newest_before < provider
        if changes.GONE not in kinds[provider] and is_of_this_run:
            sentence = f"provider {provider} is gone, its rows are {sorted(kinds[provider])}"
            yield Violation("a feed row for each change", sentence)


def _has_rows_of_this_run(history: History, numbers: Mapping[int, set[int]]) -> bool:
    """Whether all rows are there that were written in this run, where some of earlier ones were deleted."""
    if not history.operations or any("clock" in event.nemesis for event in history.events):
        return False
    begun: Mapping[str, int] = history.run.get("begun", {})
    written_nothing = all(max(known) == begun.get(str(-writer)) for writer, known in numbers.items() if writer < 0)
    last = max(operation.began if operation.ended is None else operation.ended for operation in history.operations)
    return written_nothing and last < changes.RETENTION * 10**9


def _of_earlier_runs(history: History) -> set[str]:
    """Return providers that no call of this run has created."""
    if not history.operations:
        return set()
    posts = (
        operation
        for operation in history.operations
        if (operation.method, operation.path) == ("POST", "/resource_providers")
    )
    created = {operation.body.get("uuid") for operation in posts}
    return {uuid for _, uuid, *_ in history.final["providers"]} - created


def _reshapes(history: History) -> Counter[str]:
    """Return how many reshapes may have been done to each provider."""
    return Counter(
        provider
        for operation in history.operations
        if operation.path == "/reshaper" and (operation.succeeded or operation.is_open)
        for provider in operation.body["inventories"].keys()
        | {uuid for consumer in operation.body["allocations"].values() for uuid in consumer["allocations"]}
    )
