"""Reports on consumers, discrepancies and releases, as text, JSON or CSV."""

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

#: Columns that describe a consumer in every CSV report.
_COLUMNS = ("type", "project", "user", "created_at", "updated_at", "expires_at")
_LINE = "{:<36}  {:<12}  {:<32}  {:<32}  {:>5}  {}"
_DAY, _HOUR, _MINUTE = 86400, 3600, 60
#: Maximum number of rows in a summary table.
_MAX_ROWS = 20


@dataclass(slots=True)
class Release:
    """A release and its outcome so far."""

    consumers: Sequence[AgedHolder]
    #: Orphans that may be migrations in progress.
    held_back: Sequence[AgedHolder]
    #: Whether the release is refused because its share of all consumers is too large.
    is_refused: bool
    review: Review
    dry_run: bool
    #: Uuids of the released consumers.
    released: list[str] = field(default_factory=list)
    #: Uuids of the consumers of finished transactions: released, or kept because they have changed.
    tried: set[str] = field(default_factory=set)


# --- consumers -------------------------------------------------------------------------------------------------------


def print_consumers(consumers: Iterable[AgedHolder], form: str) -> None:
    """Print consumers, each as soon as it is read."""
    if form == "csv":
        write_row = _csv_writer()
        write_row(("consumer", *_COLUMNS, "provider", "provider_name", "resource_class", "used"))
        for consumer in consumers:
            fields = _fields(consumer)
            for allocation in consumer.holder.held.values():
                for name, amount in allocation.resources.items():
                    start = (consumer.holder.uuid, *(fields[column] for column in _COLUMNS))
                    write_row((*start, allocation.provider, allocation.name, name, amount))
    elif form == "json":
        print('{"consumers": [', end="")
        for number, consumer in enumerate(consumers):
            print(",\n" if number else "\n", json.dumps(_document(consumer)), sep="", end="")
        print("\n]}")
    else:
        print(_LINE.format("consumer", "type", "project", "user", "age", "holds"))
        number = 0
        for consumer in consumers:
            holder, age = consumer.holder, age_text(consumer.age)
            cells = (holder.uuid, holder.consumer_type, holder.project, holder.user, age, allocations_text(consumer))
            print(_LINE.format(*(plain("-" if cell is None else cell) for cell in cells)))
            number += 1
        print(f"{number:,} consumers")


def allocations_text(consumer: AgedHolder) -> str:
    """Return the allocations of a consumer in one line."""
    return "; ".join(
        f"{allocation.name or allocation.provider}: "
        + ", ".join(f"{amount} {name}" for name, amount in allocation.resources.items())
        for allocation in consumer.holder.held.values()
    )


def age_text(age: datetime.timedelta | None) -> str:
    """Return an age in its largest unit.

    >>> age_text(datetime.timedelta(hours=49))
    '2d'
    """
    if age is None:
        return "?"
    seconds = int(age.total_seconds())
    for unit, letter in ((_DAY, "d"), (_HOUR, "h")):
        if seconds >= unit:
            return f"{seconds // unit}{letter}"
    return f"{seconds // _MINUTE}m"


def _fields(consumer: AgedHolder) -> dict[str, str | None]:
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
    shares = consumer.holder.held.values()
    return {
        "consumer": consumer.holder.uuid,
        **_fields(consumer),
        "age_seconds": None if consumer.age is None else int(consumer.age.total_seconds()),
        "allocations": {share.provider: {"name": share.name, "resources": share.resources} for share in shares},
    }


def _csv_writer() -> Callable[[Iterable[object]], object]:
    """Return a function that writes a row to stdout."""
    rows = csv.writer(sys.stdout, lineterminator="\n")
    return lambda cells: rows.writerow(cell if cell is None else _csv_cell(cell) for cell in cells)


def _csv_cell(cell: object) -> str:
    """Return a cell without control characters or spreadsheet formulas, since clients choose the names."""
    text = plain(cell)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


# --- discrepancies ---------------------------------------------------------------------------------------------------


def print_review(review: Review, form: str) -> None:
    """Print the discrepancies, and their numbers by kind."""
    if form == "json":
        print(json.dumps(_review_document(review), indent=1))
        return
    if form == "csv":
        _print_rows(review)
        return
    for discrepancy in review.discrepancies:
        print(_line(discrepancy))
        if discrepancy.hint and discrepancy.kind is not DiscrepancyKind.ORPHAN:
            print(f"    fix: {plain(discrepancy.hint)}")
    print(framed(("Consumers", "Number"), *_numbers(review).items()))
    if review.left_out:
        types = ", ".join(f"{number:,} {plain(name)}" for name, number in sorted(review.left_out.items()))
        print(f"Not compared, because of their type: {types}.  Choose types with --type.")
    if review.doubtful:
        print(
            f"{review.doubtful:,} consumers unknown to nova are not counted as orphans: a cell of nova does not "
            "respond, and they may be migrations there."
        )


def _line(discrepancy: Discrepancy) -> str:
    consumer = discrepancy.consumer
    facts = [f"project {discrepancy.project}"]
    if consumer is not None:
        facts = [consumer.holder.consumer_type, *facts, f"age {age_text(consumer.age)}"]
    holds = f"; holds {allocations_text(consumer)}" if consumer is not None else ""
    return plain(f"{discrepancy.kind} {discrepancy.uuid} ({', '.join(facts)}): {discrepancy.reason}{holds}")


def _numbers(review: Review) -> Mapping[str, int]:
    return {
        "compared": review.compared.total(),
        "orphans": len(review.of_kind(DiscrepancyKind.ORPHAN)),
        "unknown but young": len(review.of_kind(DiscrepancyKind.YOUNG)),
        "on several hosts": len(review.of_kind(DiscrepancyKind.DOUBLE)),
        "on another host": len(review.of_kind(DiscrepancyKind.WRONG_HOST)),
        "on no host": len(review.of_kind(DiscrepancyKind.NO_HOST)),
        "wrong amounts": len(review.of_kind(DiscrepancyKind.AMOUNTS)),
        "missing": len(review.of_kind(DiscrepancyKind.MISSING)),
        "changed meanwhile": review.changed,
        "named but idle": review.named_only,
    }


def _review_document(review: Review) -> dict[str, Any]:
    return {
        "summary": {
            "compared": review.compared.total(),
            "not_compared": dict(review.left_out),
            "found": {kind.value: len(review.of_kind(kind)) for kind in DiscrepancyKind},
            "changed_meanwhile": review.changed,
            "perhaps_migrations": review.doubtful,
            "named_and_hold_nothing": review.named_only,
        },
        "found": [
            {
                "kind": discrepancy.kind.value,
                "consumer": discrepancy.uuid,
                "project": discrepancy.project,
                "reason": discrepancy.reason,
                "hint": discrepancy.hint,
                **({} if discrepancy.consumer is None else _document(discrepancy.consumer)),
            }
            for discrepancy in review.discrepancies
        ],
    }


def _print_rows(review: Review) -> None:
    write_row = _csv_writer()
    write_row(("kind", "consumer", *_COLUMNS, "holds", "reason", "hint"))
    for discrepancy in review.discrepancies:
        fields = {"project": discrepancy.project} if discrepancy.consumer is None else _fields(discrepancy.consumer)
        holds = "" if discrepancy.consumer is None else allocations_text(discrepancy.consumer)
        write_row(
            (
                discrepancy.kind.value,
                discrepancy.uuid,
                *map(fields.get, _COLUMNS),
                holds,
                discrepancy.reason,
                discrepancy.hint,
            )
        )


# --- releases --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def report_release(release: Release, form: str) -> Iterator[None]:
    """Print the plan of a release before the block, and the outcome after it, even if it fails."""
    freed = FreedAmounts.from_consumers(release.consumers)
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
    print(framed(("Type", "Project", "Consumers"), *_first_rows(kinds, 3)))
    print(framed(("Class", "Amount"), *_first_rows([*freed.amounts.most_common()], 2)))
    providers = [(plain(name), number) for name, number in freed.providers.most_common()]
    print(framed(("Provider", "Consumers"), *_first_rows(providers, 2)))
    if release.held_back:
        print(
            f"{len(release.held_back):,} orphans of unknown type are kept: they may be migrations in progress, which "
            "only nova knows (--nova); --type unknown releases them anyway."
        )


def _first_rows(rows: list[tuple[Any, ...]], columns: int) -> list[tuple[Any, ...]]:
    """Return the first rows, and a row with the number of rows left out."""
    if len(rows) <= _MAX_ROWS:
        return rows
    return [*rows[:_MAX_ROWS], (f"and {len(rows) - _MAX_ROWS:,} more", *[""] * (columns - 1))]


def _print_outcome(release: Release) -> None:
    if release.is_refused:
        return  # the command reports the refusal on stderr
    if release.dry_run:
        print(f"Dry run: nothing was released.  Consumers that --yes releases: {len(release.consumers):,}.")
        return
    print(f"Released consumers: {len(release.released):,} of {len(release.consumers):,}.")
    for uuid in _not_released(release):
        print(f"kept {uuid}: it has changed or been released since it was read")
    if not_reached := _not_reached(release):
        print(f"Consumers not reached: {len(not_reached):,}.  The command ended early.")


def _not_released(release: Release) -> list[str]:
    unreleased = release.tried.difference(release.released)
    return [consumer.holder.uuid for consumer in release.consumers if consumer.holder.uuid in unreleased]


def _not_reached(release: Release) -> list[str]:
    return [consumer.holder.uuid for consumer in release.consumers if consumer.holder.uuid not in release.tried]


def _release_document(release: Release, freed: FreedAmounts) -> dict[str, Any]:
    return {
        "dry_run": release.dry_run,
        "refused": release.is_refused,
        "consumers": [consumer.holder.uuid for consumer in release.consumers],
        "held_back": [consumer.holder.uuid for consumer in release.held_back],
        "by_type_and_project": [
            {"type": kind, "project": project, "consumers": number}
            for (kind, project), number in freed.consumers.most_common()
        ],
        "amounts": dict(freed.amounts),
        "consumers_by_provider": dict(freed.providers),
        "released": release.released,
        "kept": _not_released(release),
        "not_reached": [] if release.dry_run else _not_reached(release),
    }
