"""``placement-manage consumers``: list consumers, compare them with nova, and release orphans (docs: orphans)."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from oslo_config import cfg

from placement import extension
from placement.cmd import program
from placement.cmd.progress import Progress
from placement.db.database import Database
from placement.db.schema import schema
from placement.extensions.baremetal.ironic import Ironic, Unreadable
from placement.extensions.orphans import comparison, consumers, releasing
from placement.extensions.orphans import reports as consumer_reports
from placement.extensions.orphans.comparison import DiscrepancyKind, Review
from placement.extensions.orphans.expected import BAREMETAL, INSTANCE, MIGRATION, Expected, InvalidNames, read_uuids
from placement.extensions.orphans.nova import Nova
from placement.extensions.orphans.reports import Release
from placement.objects.claims.consumer_pages import ConsumerFilter
from placement.objects.usage import UNKNOWN_TYPE
from placement.uuids import canonical

#: Exit code if the comparison found discrepancies to fix.
DISCREPANCIES = 3
#: Age at which an unknown consumer counts as an orphan, by default.
_DEFAULT_AGE = datetime.timedelta(hours=1)
_MAX_AGE = datetime.timedelta(days=36500)
#: Some databases truncate the dates of consumers to seconds.
_PRECISION = datetime.timedelta(seconds=1)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SUMMARY = "List consumers, or compare them with nova, Ironic or lists, and release orphans."
#: Title of progress lines.
_TITLE = "consumers"


def age(text: str) -> datetime.timedelta:
    """Parse an age such as 45m, 12h, 30d or 4w, for argparse."""
    match = re.fullmatch(r"([0-9]{1,8})([smhdw])", text, flags=re.ASCII)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not an age: use a number with s, m, h, d or w, such as 30d")
    value = datetime.timedelta(**{_UNITS[match[2]]: int(match[1])})
    if value > _MAX_AGE:
        raise argparse.ArgumentTypeError(f"{text!r} is out of range: at most {_MAX_AGE.days}d")
    return value


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the ``consumers`` command."""
    parser = commands.add_parser("consumers", help=_SUMMARY, description=_SUMMARY)
    parser.set_defaults(action=lambda conf: run(conf, parser))
    selection = parser.add_argument_group("which consumers")
    selection.add_argument("--type", action="append", metavar="<type>", help="only consumers of this type; repeatable")
    selection.add_argument("--project", metavar="<id>", help="only consumers of this project")
    selection.add_argument(
        "--older-than",
        type=age,
        metavar="<age>",
        help="only consumers neither created nor changed within this time: 45m, 12h, 30d, 4w.  In a comparison, the "
        "age at which an unknown consumer counts as an orphan (default: 1h)",
    )
    sources = parser.add_argument_group("consumers that should exist (repeatable)")
    sources.add_argument(
        "--not-in", action="append", default=[], metavar="<file>", help='a file with one uuid per line; "-" is stdin'
    )
    sources.add_argument(
        "--nova", action="append", default=[], metavar="<cloud>", help="the servers and migrations in a cloud's nova"
    )
    sources.add_argument(
        "--ironic",
        action="append",
        default=[],
        metavar="<cloud>",
        help="the consumers that use nodes of a cloud's Ironic",
    )
    sources.add_argument(
        "--allow-empty",
        action="store_true",
        help="accept a file without uuids, a nova without servers or an Ironic without nodes",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document")
    form.add_argument("--csv", action="store_true", help="print comma-separated values")
    release = parser.add_argument_group("release of orphans")
    release.add_argument(
        "--release", action="store_true", help="show what a release of the orphans would free; requires --older-than"
    )
    release.add_argument("--yes", action="store_true", help="release them")
    release.add_argument(
        "--force", action="store_true", help="release the orphans even if they are more than half of all consumers"
    )


def run(conf: cfg.ConfigOpts, parser: argparse.ArgumentParser) -> int:
    """List or compare consumers, release orphans on request, and return the exit code."""
    arguments = conf.command
    _check(arguments, parser)
    began = time.monotonic()  # before reading the lists, which may take long
    try:
        expected = _from_files(arguments)
        with program.connected(conf) as database:
            schema.require_current(database.reading_engine, extension.additions(conf))
            if not (arguments.not_in or arguments.nova or arguments.ironic):
                _show(database, arguments)
                return 0
            return _compare(database, arguments, expected, began)
    except (InvalidNames, Unreadable) as reason:
        print(f"placement-manage: {' '.join(str(reason).split())}", file=sys.stderr)
        return 1


def _check(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """End the command with an error if its arguments cannot be combined."""
    if arguments.not_in.count("-") > 1:
        parser.error("--not-in: stdin can be read only once")
    if arguments.release:
        if not (arguments.not_in or arguments.nova or arguments.ironic):
            parser.error("--release requires --not-in, --nova or --ironic")
        if arguments.older_than is None:
            parser.error("--release requires --older-than")
        if MIGRATION in (arguments.type or ()) and not arguments.nova:
            parser.error("--release of migrations requires --nova, which knows the migrations in progress")
    elif arguments.yes or arguments.force:
        parser.error("--yes and --force require --release")


# --- consumers that should exist -------------------------------------------------------------------------------------


def _from_files(arguments: argparse.Namespace) -> Expected:
    """Return the consumers named in files, and the types to compare."""
    expected = Expected()
    for file in arguments.not_in:
        with _open(file) as lines:
            expected.named |= read_uuids(lines, file, may_be_empty=arguments.allow_empty)
    if arguments.type:
        expected.types = frozenset(arguments.type)
    elif arguments.nova or arguments.ironic:
        # Consumers of other types may belong to other clients.  Files can name consumers of any type.
        of_nova = {INSTANCE, MIGRATION, UNKNOWN_TYPE} if arguments.nova else set()
        of_ironic = {BAREMETAL} if arguments.ironic else set()
        expected.types = frozenset(of_nova | of_ironic)
    else:
        # Lists of servers do not contain these types.
        expected.types_left_out = frozenset({MIGRATION, BAREMETAL})
    return expected


@contextlib.contextmanager
def _open(file: str) -> Iterator[Iterable[str]]:
    try:
        if file == "-":
            yield sys.stdin
        else:
            with open(file, encoding="utf-8-sig") as opened:
                yield opened
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidNames(f"{file} cannot be read: {error}") from error


def _read_sources(arguments: argparse.Namespace, expected: Expected) -> Sequence[Nova]:
    """Add the consumers known to nova and Ironic, and return the clients of nova."""
    novas = [Nova(cloud) for cloud in arguments.nova]
    with Progress(_TITLE, "servers read") as progress:
        for cloud, nova in zip(arguments.nova, novas, strict=True):
            before = len(expected.servers)
            nova.read(expected, progress.advance)
            if len(expected.servers) == before and not arguments.allow_empty:
                raise Unreadable(
                    f"nova in cloud {cloud} shows no servers: all would be orphans; use --allow-empty if intended"
                )
    with Progress(_TITLE, "nodes read") as progress:
        for cloud in arguments.ironic:
            ironic = Ironic(argparse.Namespace(os_cloud=cloud))
            # Allocations before nodes: an allocation that begins in between shows on its node, and one that ends in
            # between is still listed.
            users = [allocation["uuid"] for allocation in ironic.allocations() if allocation.get("state") != "error"]
            before = len(users)
            for node in ironic.nodes():
                users += [node.get("instance_uuid"), node.get("allocation_uuid")]
                progress.advance(1)
            if len(users) == before and not arguments.allow_empty:
                raise Unreadable(
                    f"Ironic in cloud {cloud} shows no nodes: all would be orphans; use --allow-empty if intended"
                )
            expected.named |= {uuid for uuid in map(canonical, filter(None, users)) if uuid is not None}
    return novas


# --- reading ---------------------------------------------------------------------------------------------------------


def _show(database: Database, arguments: argparse.Namespace) -> None:
    """Print the consumers that meet the conditions."""
    age_limit = arguments.older_than
    # The query can filter by one type; several are filtered here.
    only = arguments.type[0] if arguments.type and len(arguments.type) == 1 else None
    conditions = ConsumerFilter(project=arguments.project, consumer_type=only)
    with Progress(_TITLE, "consumers read") as progress:
        matches = (
            consumer
            for consumer in consumers.read(database, conditions, progress.advance)
            if (age_limit is None or consumer.is_older_than(age_limit))
            and (not arguments.type or consumer.holder.consumer_type in arguments.type)
        )
        consumer_reports.print_consumers(matches, _form(arguments))


def _form(arguments: argparse.Namespace) -> str:
    return "json" if arguments.json else "csv" if arguments.csv else "text"


def _compare(database: Database, arguments: argparse.Namespace, expected: Expected, began: float) -> int:
    """Print the discrepancies, release orphans on request, and return the exit code.

    Args:
        database: The database with the consumers.
        arguments: The arguments of the command.
        expected: The consumers named in files.
        began: Monotonic time before the expected consumers were read.
    """
    # Read nova first: a consumer created afterwards is younger than the time that reading takes, so it is no orphan.
    novas = _read_sources(arguments, expected)
    with Progress(_TITLE, "consumers compared") as progress:
        holders = consumers.read(database, ConsumerFilter(), progress.advance)
        reading_time = datetime.timedelta(seconds=time.monotonic() - began)
        age_limit = max(arguments.older_than or _DEFAULT_AGE, reading_time + _PRECISION)
        review = comparison.compare(holders, expected, age_limit, arguments.project)
    if (
        novas
        and arguments.release
        and not arguments.force
        and releasing.is_suspicious(review, releasing.orphans(review))
    ):
        # Refused in any case; asking nova about each orphan could take days.
        return _release(database, arguments, review)
    _confirm(review, expected, novas)
    if not arguments.release:
        consumer_reports.print_review(review, _form(arguments))
        if review.of_kind(DiscrepancyKind.ORPHAN) and _form(arguments) == "text":
            print("To show what a release of the orphans would free, add --release --older-than <age>.")
        return DISCREPANCIES if review.needs_work else 0
    return _release(database, arguments, review)


def _confirm(review: Review, expected: Expected, novas: Sequence[Nova]) -> None:
    """Ask nova again about the discrepancies, and drop outdated discrepancies."""
    if not novas:
        return
    with Progress(_TITLE, "orphans confirmed", len(review.of_kind(DiscrepancyKind.ORPHAN))) as progress:

        def exists(uuid: str) -> bool:
            progress.advance(1)
            return any(nova.exists(uuid) for nova in novas)

        comparison.confirm(review, exists)
    if not review.discrepancies:
        return
    with Progress(_TITLE):
        changed = frozenset(itertools.chain.from_iterable(nova.changed_servers() for nova in novas))
        comparison.leave_out_changed(review, expected, changed)
    if any(nova.is_partial(expected, changed) for nova in novas):
        comparison.hold_back_migrations(review)


# --- release ---------------------------------------------------------------------------------------------------------


def _release(database: Database, arguments: argparse.Namespace, review: Review) -> int:
    orphans = releasing.orphans(review)
    held_back = []
    if not arguments.nova and UNKNOWN_TYPE not in (arguments.type or ()):
        held_back = [consumer for consumer in orphans if consumer.holder.consumer_type == UNKNOWN_TYPE]
        orphans = [consumer for consumer in orphans if consumer.holder.consumer_type != UNKNOWN_TYPE]
    is_refused = releasing.is_suspicious(review, orphans) and not arguments.force
    release = Release(orphans, held_back, is_refused=is_refused, review=review, dry_run=not arguments.yes or is_refused)
    with consumer_reports.report_release(release, _form(arguments)):
        if not release.dry_run:
            with Progress(_TITLE, "consumers released", len(orphans)) as progress:
                releasing.release_orphans(database, orphans, release.released, release.tried, progress.advance)
    if is_refused:
        print(
            f"placement-manage: {len(orphans):,} of {review.compared.total():,} consumers would be released, more than "
            "half of all or of one type: most likely a list or a cloud is incomplete; if not, use --force",
            file=sys.stderr,
        )
        return 1
    settled = (DiscrepancyKind.ORPHAN, *comparison.HARMLESS)
    unsettled = any(discrepancy.kind not in settled for discrepancy in review.discrepancies)
    remaining = held_back or unsettled or review.doubtful or len(release.released) < len(orphans)
    return DISCREPANCIES if remaining else 0
