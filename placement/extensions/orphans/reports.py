"""Consumers, what is wrong with them, and what became of a release, as text, JSON and comma-separated values."""

from __future__ import annotations

import contextlib
import csv
import datetime
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placement.cmd.text_table import framed, plain
from placement.extensions.orphans.comparison import Discrepancy, DiscrepancyKind, Review
from placement.extensions.orphans.consumers import AgedHolder
from placement.extensions.orphans.releasing import FreedAmounts
from placement.schemas.dates import date

#: Columns that consumers have in every comma-separated form.
_COLUMNS = ("type", "project", "user", "created_at", "updated_at", "expires_at")
_LINE = "{:<36}  {:<12}  {:<32}  {:<32}  {:>5}  {}"
_DAY, _HOUR, _MINUTE = 86400, 3600, 60
#: Rows that a table of a summary has at most.
_MOST = 20


@dataclass(slots=True)
class Release:
    """A release, and what has become of it so far."""

    chosen: Sequence[AgedHolder]
    #: Orphans that may be migrations in progress.
    held_back: Sequence[AgedHolder]
    #: Whether there are more of them than there should be.
    too_many: bool
    review: Review
    dry_run: bool
    #: Uuids.
    released: list[str] = field(default_factory=list)
    #: Those that a transaction was about: released, or kept because they have changed.
    tried: set[str] = field(default_factory=set)


# --- consumers -------------------------------------------------------------------------------------------------------


def print_consumers(consumers: Iterable[AgedHolder], form: str) -> None:
    """Print consumers, each as soon as it was read."""
    if form == "csv":
        write_row = _csv_writer()
        write_row(("consumer", *_COLUMNS, "provider", "provider_name", "resource_class", "used"))
        for one in consumers:
            facts = _facts(one)
            for held in one.holder.held.values():
                for name, amount in held.resources.items():
                    start = (one.holder.uuid, *(facts[column] for column in _COLUMNS))
                    write_row((*start, held.provider, held.name, name, amount))
    elif form == "json":
        print('{"consumers": [', end="")
        for number, one in enumerate(consumers):
            print(",\n" if number else "\n", json.dumps(_document(one)), sep="", end="")
        print("\n]}")
    else:
        print(_LINE.format("consumer", "type", "project", "user", "age", "holds"))
        number = 0
        for one in consumers:
            holder = one.holder
            cells = (holder.uuid, holder.consumer_type, holder.project, holder.user, shown_age(one.age), shown(one))
            print(_LINE.format(*(plain("-" if cell is None else cell) for cell in cells)))
            number += 1
        print(f"{number:,} consumers")


def shown(consumer: AgedHolder) -> str:
    """Return what a consumer holds, in a line."""
    return "; ".join(
        f"{held.name or held.provider}: " + ", ".join(f"{amount} {name}" for name, amount in held.resources.items())
        for held in consumer.holder.held.values()
    )


def shown_age(age: datetime.timedelta | None) -> str:
    """Return an age in its largest unit.

    >>> shown_age(datetime.timedelta(hours=49))
    '2d'
    """
    if age is None:
        return "?"
    seconds = int(age.total_seconds())
    for unit, letter in ((_DAY, "d"), (_HOUR, "h")):
        if seconds >= unit:
            return f"{seconds // unit}{letter}"
    return f"{seconds // _MINUTE}m"


def _facts(consumer: AgedHolder) -> dict[str, str | None]:
    holder = consumer.holder
    return {
        "type": holder.consumer_type,
        "project": holder.project,
        "user": holder.user,
        "created_at": date(holder.created_at),
        "updated_at": date(holder.updated_at),
        "expires_at": date(holder.expires_at),
    }


def _document(consumer: AgedHolder) -> dict[str, Any]:
    held = consumer.holder.held.values()
    return {
        "consumer": consumer.holder.uuid,
        **_facts(consumer),
        "age_seconds": None if consumer.age is None else int(consumer.age.total_seconds()),
        "allocations": {one.provider: {"name": one.name, "resources": one.resources} for one in held},
    }


def _csv_writer() -> Callable[[Iterable[object]], object]:
    """Return a function that writes a row to stdout."""
    rows = csv.writer(sys.stdout, lineterminator="\n")
    return lambda cells: rows.writerow(cell if cell is None else _csv_cell(cell) for cell in cells)


def _csv_cell(cell: object) -> str:
    """Return a text that controls no terminal and is no formula of a spreadsheet: names are what clients like."""
    text = plain(cell)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


# --- what was found --------------------------------------------------------------------------------------------------


def print_review(review: Review, form: str) -> None:
    """Print what was found, and how much of each kind."""
    if form == "json":
        print(json.dumps(_review_document(review), indent=1))
        return
    if form == "csv":
        _print_rows(review)
        return
    for one in review.found:
        print(_line(one))
        if one.hint and one.kind is not DiscrepancyKind.ORPHAN:
            print(f"    fix: {plain(one.hint)}")
    print(framed(("Consumers", "Number"), *_numbers(review).items()))
    if review.left_out:
        kinds = ", ".join(f"{number:,} {plain(name)}" for name, number in sorted(review.left_out.items()))
        print(f"Not compared, because of their type: {kinds}.  --type names those that are.")
    if review.doubtful:
        print(
            f"{review.doubtful:,} consumers that nova does not know are no orphans: a cell of nova does not answer, "
            "and they may be migrations there."
        )


def _line(one: Discrepancy) -> str:
    consumer = one.consumer
    facts = [f"project {one.project}"]
    if consumer is not None:
        facts = [consumer.holder.consumer_type, *facts, f"age {shown_age(consumer.age)}"]
    holds = f"; holds {shown(consumer)}" if consumer is not None else ""
    return plain(f"{one.kind} {one.uuid} ({', '.join(facts)}): {one.reason}{holds}")


def _numbers(review: Review) -> Mapping[str, int]:
    return {
        "compared": review.compared.total(),
        "orphans": len(review.of(DiscrepancyKind.ORPHAN)),
        "unknown, but young": len(review.of(DiscrepancyKind.YOUNG)),
        "on several hosts": len(review.of(DiscrepancyKind.DOUBLE)),
        "on another host": len(review.of(DiscrepancyKind.WRONG_HOST)),
        "on no host": len(review.of(DiscrepancyKind.NO_HOST)),
        "of other amounts": len(review.of(DiscrepancyKind.AMOUNTS)),
        "missing": len(review.of(DiscrepancyKind.MISSING)),
        "changed meanwhile": review.changed,
        "named, hold nothing": review.named_only,
    }


def _review_document(review: Review) -> dict[str, Any]:
    return {
        "summary": {
            "compared": review.compared.total(),
            "not_compared": dict(review.left_out),
            "found": {kind.value: len(review.of(kind)) for kind in DiscrepancyKind},
            "changed_meanwhile": review.changed,
            "perhaps_migrations": review.doubtful,
            "named_and_hold_nothing": review.named_only,
        },
        "found": [
            {
                "kind": one.kind.value,
                "consumer": one.uuid,
                "project": one.project,
                "reason": one.reason,
                "hint": one.hint,
                **({} if one.consumer is None else _document(one.consumer)),
            }
            for one in review.found
        ],
    }


def _print_rows(review: Review) -> None:
    write_row = _csv_writer()
    write_row(("kind", "consumer", *_COLUMNS, "holds", "reason", "hint"))
    for one in review.found:
        facts = {"project": one.project} if one.consumer is None else _facts(one.consumer)
        holds = "" if one.consumer is None else shown(one.consumer)
        write_row((one.kind.value, one.uuid, *map(facts.get, _COLUMNS), holds, one.reason, one.hint))


# --- releases --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def printed(release: Release, form: str) -> Iterator[None]:
    """Print what a release is about before it begins, and what has become of it at its end, also after a failure."""
    freed = FreedAmounts.of(release.chosen)
    if form != "json":
        print_review(release.review, form)
        with contextlib.redirect_stdout(sys.stderr if form == "csv" else sys.stdout):
            _print_freed(release, freed)
        sys.stdout.flush()
    try:
        yield
    finally:
        if form == "json":
            print(
                json.dumps({**_review_document(release.review), "release": _release_document(release, freed)}, indent=1)
            )
        else:
            with contextlib.redirect_stdout(sys.stderr if form == "csv" else sys.stdout):
                _print_outcome(release)


def _print_freed(release: Release, freed: FreedAmounts) -> None:
    kinds = [(plain(kind), plain(project), number) for (kind, project), number in freed.consumers.most_common()]
    print(framed(("Type", "Project", "Consumers"), *_few(kinds, 3)))
    print(framed(("Class", "Amount"), *_few([*freed.amounts.most_common()], 2)))
    providers = [(plain(name), number) for name, number in freed.providers.most_common()]
    print(framed(("Provider", "Consumers"), *_few(providers, 2)))
    if release.held_back:
        print(
            f"{len(release.held_back):,} orphans of unknown type stay: they may be migrations in progress, which only "
            "nova knows (--nova); --type unknown releases them all the same."
        )


def _few(rows: list[tuple[Any, ...]], columns: int) -> list[tuple[Any, ...]]:
    """Return the first rows, and one that counts the others."""
    if len(rows) <= _MOST:
        return rows
    return [*rows[:_MOST], (f"and {len(rows) - _MOST:,} more", *[""] * (columns - 1))]


def _print_outcome(release: Release) -> None:
    if release.too_many:
        return  # which a line on stderr says
    if release.dry_run:
        print(f"Dry run: nothing was released.  --yes releases {len(release.chosen):,} consumers.")
        return
    print(f"{len(release.released):,} of {len(release.chosen):,} consumers were released.")
    for uuid in _kept(release):
        print(f"kept {uuid}: it has changed or ended since it was read")
    if not_reached := _not_reached(release):
        print(f"{len(not_reached):,} consumers were not reached: the command ended before.")


def _kept(release: Release) -> list[str]:
    kept = release.tried.difference(release.released)
    return [one.holder.uuid for one in release.chosen if one.holder.uuid in kept]


def _not_reached(release: Release) -> list[str]:
    return [one.holder.uuid for one in release.chosen if one.holder.uuid not in release.tried]


def _release_document(release: Release, freed: FreedAmounts) -> dict[str, Any]:
    return {
        "dry_run": release.dry_run,
        "refused": release.too_many,
        "consumers": [one.holder.uuid for one in release.chosen],
        "held_back": [one.holder.uuid for one in release.held_back],
        "by_type_and_project": [
            {"type": kind, "project": project, "consumers": number}
            for (kind, project), number in freed.consumers.most_common()
        ],
        "amounts": dict(freed.amounts),
        "consumers_by_provider": dict(freed.providers),
        "released": release.released,
        "kept": _kept(release),
        "not_reached": [] if release.dry_run else _not_reached(release),
    }
