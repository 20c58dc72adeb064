"""Contradictions in a recorded history, which no order of its requests explains."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any

from tests.load.storm import Event


def contradictions(history: Sequence[Event]) -> list[str]:
    """Return violations of the rules: no 5xx, each generation is used once, and generations never decrease."""
    return [*_server_errors(history), *_provider_generations(history), *_consumer_generations(history)]


def _server_errors(history: Sequence[Event]) -> Iterator[str]:
    for event in history:
        if event.answer.status >= 500:
            yield f"{event.call.method} {event.call.path}: {event.answer}"


# --- providers -------------------------------------------------------------------------------------------------------


def _provider_generations(history: Sequence[Event]) -> Iterator[str]:
    writers = collections.Counter(
        (_provider(event), event.call.body["resource_provider_generation"])
        for event in history
        if event.answer.status == 200 and _is_guarded(event) and _advances_generation(event)
    )
    yield from (f"two writers advanced {provider} from {g}" for (provider, g), number in writers.items() if number > 1)
    observations = collections.defaultdict(list)
    for event in history:
        for provider, generation in _shown_generations(event):
            observations[provider].append((event.ended, event.began, generation))
    for provider, provider_observations in observations.items():
        yield from _decreases(provider, provider_observations)


def _decreases(provider: str, observations: list[tuple[float, float, int]]) -> Iterator[str]:
    """Yield requests that show an older generation than one completed before they began."""
    for ended, _, generation in sorted(observations):
        later = min((g for _, began, g in observations if began > ended), default=generation)
        if later < generation:
            yield f"the generation of {provider} decreased from {generation} to {later}"


def _provider(event: Event) -> str:
    return event.call.path.split("/")[2]


def _is_guarded(event: Event) -> bool:
    return event.call.method == "PUT" and "resource_provider_generation" in (event.call.body or {})


def _advances_generation(event: Event) -> bool:
    """Whether the write increased the generation; a write of unchanged traits does not."""
    sent, returned = (body["resource_provider_generation"] for body in (event.call.body, event.answer.body))
    assert returned in (sent, sent + 1), event
    return bool(returned != sent)


def _shown_generations(event: Event) -> Iterator[tuple[str, int]]:
    body: Any = event.answer.body
    if event.answer.status != 200:
        return
    if event.call.path.startswith("/resource_providers/"):
        generation = body.get("resource_provider_generation", body.get("generation"))
        if generation is not None:
            yield _provider(event), generation
    elif event.call.path.startswith("/allocations/"):
        yield from _generations(body["allocations"])
    elif event.call.path == "/v1/claims":
        for result in body["results"]:
            yield from _generations(result.get("allocations", {}))
    elif event.call.path.startswith("/v1/claims/"):
        yield from _generations(body["allocations"])


def _generations(allocations: Any) -> Iterator[tuple[str, int]]:
    return ((provider, entry["generation"]) for provider, entry in allocations.items())


# --- consumers -------------------------------------------------------------------------------------------------------


def _consumer_generations(history: Sequence[Event]) -> Iterator[str]:
    writers: dict[str, collections.Counter[int | None]] = collections.defaultdict(collections.Counter)
    ends: collections.Counter[str] = collections.Counter()
    for event in history:
        if event.answer.status == 204:
            for consumer, body in _claims(event):
                if "consumer_generation" in body:
                    writers[consumer][body["consumer_generation"]] += 1
                ends[consumer] += not body["allocations"]
    for consumer, generations in writers.items():
        lives = 1 + ends[consumer]
        yield from (f"{n} writers of {consumer} from {g}" for g, n in generations.items() if n > lives)


def _claims(event: Event) -> Iterator[tuple[str, Any]]:
    """Yield each consumer of a request, with the allocations that it writes."""
    call = event.call
    if call.path.startswith("/allocations/"):
        yield call.path.split("/")[2], call.body or {"allocations": {}}
    elif call.path == "/allocations":
        yield from call.body.items()
    elif call.path == "/reshaper":
        yield from call.body["allocations"].items()
