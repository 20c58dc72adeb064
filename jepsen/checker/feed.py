"""Check of the rows of the change feed after a run: no gaps, and a row for each change (docs/adr/0004).

A writer's rows are kept for ``feed.RETENTION`` after its next number, or until it has been idle for ``feed.LIFETIME``.
So all rows of a shorter run are still present, unless clocks are moved; rows of earlier runs on the same cluster may be
deleted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jepsen.history import History
from jepsen.violation import Violation
from placement.db import feed as changes

#: Largest increase of a provider's generation in the single transaction of a reshape; other transactions raise it by
#: one.
_MAX_INCREASE = 3


def feed(history: History) -> list[Violation]:
    """Return violations by gaps in the numbers of writers, and by changes without a row."""
    rows: Sequence[Sequence[Any]] | None = history.final.get("feed")
    if rows is None:
        return []
    numbers: dict[int, set[int]] = defaultdict(set)
    for writer, number, _, _ in rows:
        numbers[writer].add(number)
    # Numbers lost with their commits are not used again.  They leave gaps in this run or, after a loss in an earlier
    # run on the same cluster, between the newest number of that run and the first of this one.
    lossy = any(event.loses_tail for event in history.events)
    newest_before: Mapping[str, int] = history.run.get("newest", {})
    return [*(() if lossy else _gaps(numbers, newest_before)), *_missing_rows(history, rows, numbers)]


def _gaps(numbers: Mapping[int, set[int]], newest_before: Mapping[str, int]) -> Iterator[Violation]:
    for writer, writer_numbers in numbers.items():
        new_numbers = {number for number in writer_numbers if number > newest_before.get(str(abs(writer)), 0)}
        if not new_numbers:
            continue
        missing = set(range(min(new_numbers), max(new_numbers))) - new_numbers
        if missing:
            sentence = (
                f"writer {writer} has numbers {min(new_numbers)} to {max(new_numbers)} except {sorted(missing)[:5]}"
            )
            yield Violation("feed numbers without gaps", sentence)


def _missing_rows(
    history: History, rows: Sequence[Sequence[Any]], numbers: Mapping[int, set[int]]
) -> Iterator[Violation]:
    earlier = _earlier_providers(history)
    newest_earlier_id = max(
        (provider for provider, uuid, *_ in history.final["providers"] if uuid in earlier), default=0
    )
    # Rows of ended writers, and of writers whose old rows were deleted, are missing.
    deleted = any(writer < 0 or min(writer_numbers) > 1 for writer, writer_numbers in numbers.items())
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
        # Creation leaves the generation at 0, and every transaction that raises it writes one row.
        min_rows = 1 + generation - reshapes[uuid] * (_MAX_INCREASE - 1)
        # A transaction of the Bare Metal API may raise a node's generation several times, and the reshapes of earlier
        # runs on this cluster are unknown.
        if uuid not in nodes | earlier and count[provider] < min_rows:
            sentence = (
                f"provider {uuid} has generation {generation} but {count[provider]} rows, expected {min_rows} or more"
            )
            yield Violation("a feed row for each change", sentence)
        if changes.SHAPE not in kinds[provider] and not (deleted and uuid in earlier):
            yield Violation("a feed row for each change", f"provider {uuid} has no row for its creation")
    for provider in kinds.keys() - present - {changes.NO_PROVIDER}:
        # Ids ascend; without a provider of an earlier run, the first id of this run is unknown.
        is_of_this_run = not deleted or 0 < newest_earlier_id < provider
        if changes.GONE not in kinds[provider] and is_of_this_run:
            sentence = f"provider {provider} is gone, but its rows are {sorted(kinds[provider])}"
            yield Violation("a feed row for each change", sentence)


def _has_rows_of_this_run(history: History, numbers: Mapping[int, set[int]]) -> bool:
    """Whether all rows written in this run are present, although rows of earlier runs were deleted."""
    if not history.operations or any("clock" in event.nemesis for event in history.events):
        return False
    newest_before: Mapping[str, int] = history.run.get("begun", {})
    written_nothing = all(
        max(writer_numbers) == newest_before.get(str(-writer))
        for writer, writer_numbers in numbers.items()
        if writer < 0
    )
    last = max(operation.began if operation.ended is None else operation.ended for operation in history.operations)
    return written_nothing and last < changes.RETENTION * 10**9


def _earlier_providers(history: History) -> set[str]:
    """Return the providers that no operation of this run created."""
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
    """Return the possible number of reshapes of each provider."""
    return Counter(
        provider
        for operation in history.operations
        if operation.path == "/reshaper" and (operation.succeeded or operation.is_open)
        for provider in operation.body["inventories"].keys()
        | {uuid for consumer in operation.body["allocations"].values() for uuid in consumer["allocations"]}
    )
