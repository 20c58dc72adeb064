"""placement-manage consumers: who holds what, what nobody knows, and what differs from nova (docs: orphans)."""

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
from placement.extensions.orphans.expected import BAREMETAL, INSTANCE, MIGRATION, Expected, InvalidNames, named
from placement.extensions.orphans.nova import Nova
from placement.extensions.orphans.reports import Release
from placement.objects.claims.consumer_pages import ConsumerFilter
from placement.objects.usage import UNKNOWN_TYPE
from placement.uuids import canonical

#: The exit code if something was found that is to be mended.
FOUND = 3
#: The age from which a consumer that nobody knows is an orphan.
_BOUND = datetime.timedelta(hours=1)
_LONGEST = datetime.timedelta(days=36500)
#: Dates of consumers are cut to seconds by some databases.
_PRECISION = datetime.timedelta(seconds=1)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SHOW = "Show consumers, or compare them with those that should exist, and give back what nobody knows."
_WORK = "consumers"


def age(text: str) -> datetime.timedelta:
    """Parse an age such as 45m, 12h, 30d or 4w, for argparse."""
    found = re.fullmatch(r"([0-9]{1,8})([smhdw])", text, flags=re.ASCII)
    if found is None or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no age: a number with s, m, h, d or w, such as 30d")
    value = datetime.timedelta(**{_UNITS[found[2]]: int(found[1])})
    if value > _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is out of range: at most {_LONGEST.days}d")
    return value


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``consumers``."""
    parser = commands.add_parser("consumers", help=_SHOW, description=_SHOW)
    parser.set_defaults(action=lambda conf: run(conf, parser))
    which = parser.add_argument_group("which consumers")
    which.add_argument("--type", action="append", metavar="<type>", help="of this type only; repeatable")
    which.add_argument("--project", metavar="<id>", help="of this project only")
    which.add_argument(
        "--older-than",
        type=age,
        metavar="<age>",
        help="neither created nor changed in this time: 45m, 12h, 30d, 4w.  In a comparison, the age from which a "
        "consumer that nobody knows is an orphan (default: 1h)",
    )
    sources = parser.add_argument_group("those that should exist (each is repeatable)")
    sources.add_argument(
        "--not-in", action="append", default=[], metavar="<file>", help='a file with a uuid in each line; "-" is stdin'
    )
    sources.add_argument(
        "--nova", action="append", default=[], metavar="<cloud>", help="the servers and migrations of a cloud's nova"
    )
    sources.add_argument(
        "--ironic",
        action="append",
        default=[],
        metavar="<cloud>",
        help="what the nodes of a cloud's Ironic are used by",
    )
    sources.add_argument(
        "--allow-empty",
        action="store_true",
        help="accept a file without uuids, a nova without servers, an Ironic without nodes",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document")
    form.add_argument("--csv", action="store_true", help="print comma-separated values")
    giving_back = parser.add_argument_group("giving back")
    giving_back.add_argument(
        "--release", action="store_true", help="show what the release of the orphans makes free; requires --older-than"
    )
    giving_back.add_argument("--yes", action="store_true", help="release them")
    giving_back.add_argument(
        "--force", action="store_true", help="do it even if they are more than half of all consumers"
    )


def run(conf: cfg.ConfigOpts, parser: argparse.ArgumentParser) -> int:
    """Print consumers, or what was found, and release orphans if that is wanted; return the exit code."""
    arguments = conf.command
    _check(arguments, parser)
    began = time.monotonic()  # before the first of those that should exist is read, which may be sent slowly
    try:
        expected = _listed(arguments)
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
    """End the command if its arguments do not go together."""
    if arguments.not_in.count("-") > 1:
        parser.error("--not-in: stdin can be read once")
    if arguments.release:
        if not (arguments.not_in or arguments.nova or arguments.ironic):
            parser.error("--release requires --not-in, --nova or --ironic")
        if arguments.older_than is None:
            parser.error("--release requires --older-than")
        if MIGRATION in (arguments.type or ()) and not arguments.nova:
            parser.error("--release of migrations requires --nova, which knows those in progress")
    elif arguments.yes or arguments.force:
        parser.error("--yes and --force are for --release")


# --- those that should exist -----------------------------------------------------------------------------------------


def _listed(arguments: argparse.Namespace) -> Expected:
    """Return the consumers that files name, and which types are compared."""
    expected = Expected()
    for file in arguments.not_in:
        with _lines(file) as lines:
            expected.named |= named(lines, file, may_be_empty=arguments.allow_empty)
    if arguments.type:
        expected.types = frozenset(arguments.type)
    elif arguments.nova or arguments.ironic:
        # Consumers of other types may belong to other programs; what files name is known besides.
        of_nova = {INSTANCE, MIGRATION, UNKNOWN_TYPE} if arguments.nova else set()
        of_ironic = {BAREMETAL} if arguments.ironic else set()
        expected.types = frozenset(of_nova | of_ironic)
    else:
        # Lists of servers do not name them.
        expected.types_left_out = frozenset({MIGRATION, BAREMETAL})
    return expected


@contextlib.contextmanager
def _lines(file: str) -> Iterator[Iterable[str]]:
    try:
        if file == "-":
            yield sys.stdin
        else:
            with open(file, encoding="utf-8-sig") as opened:
                yield opened
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidNames(f"{file} cannot be read: {error}") from error


def _ask(arguments: argparse.Namespace, expected: Expected) -> Sequence[Nova]:
    """Add what nova and Ironic know; return the clients of nova."""
    novas = [Nova(cloud) for cloud in arguments.nova]
    with Progress(_WORK, "servers read") as progress:
        for cloud, nova in zip(arguments.nova, novas, strict=True):
            before = len(expected.servers)
            nova.read(expected, progress.advance)
            if len(expected.servers) == before and not arguments.allow_empty:
                raise Unreadable(f"nova of {cloud} shows no server, so that all would be orphans; --allow-empty if so")
    with Progress(_WORK, "nodes read") as progress:
        for cloud in arguments.ironic:
            ironic = Ironic(argparse.Namespace(os_cloud=cloud))
            # Read before the nodes: one that ends in between then has no node in use any more.
            users = [one["uuid"] for one in ironic.allocations() if one.get("state") != "error"]
            before = len(users)
            for node in ironic.nodes():
                users += [node.get("instance_uuid"), node.get("allocation_uuid")]
                progress.advance(1)
            if len(users) == before and not arguments.allow_empty:
                raise Unreadable(f"Ironic of {cloud} shows no node, so that all would be orphans; --allow-empty if so")
            expected.named |= {uuid for uuid in map(canonical, filter(None, users)) if uuid is not None}
    return novas


# --- reading ---------------------------------------------------------------------------------------------------------


def _show(database: Database, arguments: argparse.Namespace) -> None:
    """Print the consumers that meet the conditions."""
    bound = arguments.older_than
    # A type has an index, several have none.
    only = arguments.type[0] if arguments.type and len(arguments.type) == 1 else None
    wanted = ConsumerFilter(project=arguments.project, consumer_type=only)
    with Progress(_WORK, "consumers read") as progress:
        found = (
            one
            for one in consumers.read(database, wanted, progress.advance)
            if (bound is None or one.is_older_than(bound))
            and (not arguments.type or one.holder.consumer_type in arguments.type)
        )
        consumer_reports.print_consumers(found, _form(arguments))


def _form(arguments: argparse.Namespace) -> str:
    return "json" if arguments.json else "csv" if arguments.csv else "text"


def _compare(database: Database, arguments: argparse.Namespace, expected: Expected, began: float) -> int:
    """Print what differs, and release orphans if that is wanted; return the exit code.

    Args:
        database: Where the consumers are.
        arguments: Those of the command.
        expected: What files name.
        began: When, by the monotonic clock, the reading of all that should exist began.
    """
    # nova first: a consumer that comes later is younger than the reading takes, and so too young to be an orphan.
    novas = _ask(arguments, expected)
    with Progress(_WORK, "consumers compared") as progress:
        read = consumers.read(database, ConsumerFilter(), progress.advance)
        asked_for = datetime.timedelta(seconds=time.monotonic() - began)
        bound = max(arguments.older_than or _BOUND, asked_for + _PRECISION)
        review = comparison.compare(read, expected, bound, arguments.project)
    if novas and arguments.release and not arguments.force and releasing.is_most(review, releasing.orphans(review)):
        return _release(database, arguments, review)  # which refuses; to ask for each of them could take days
    _confirm(review, expected, novas)
    if not arguments.release:
        consumer_reports.print_review(review, _form(arguments))
        if review.of(DiscrepancyKind.ORPHAN) and _form(arguments) == "text":
            print("With --release --older-than <age> the command shows what the release of the orphans makes free.")
        return FOUND if review.needs_work else 0
    return _release(database, arguments, review)


def _confirm(review: Review, expected: Expected, novas: Sequence[Nova]) -> None:
    """Ask nova again about what was found."""
    if not novas:
        return
    with Progress(_WORK, "orphans asked for", len(review.of(DiscrepancyKind.ORPHAN))) as progress:

        def exists(uuid: str) -> bool:
            progress.advance(1)
            return any(nova.exists(uuid) for nova in novas)

        comparison.confirm(review, exists)
    if not review.found:
        return
    with Progress(_WORK):
        changed = frozenset(itertools.chain.from_iterable(nova.changed() for nova in novas))
        comparison.leave_out_changed(review, expected, changed)
    if any(nova.is_partial(expected, changed) for nova in novas):
        comparison.hold_back_migrations(review)


# --- giving back -----------------------------------------------------------------------------------------------------


def _release(database: Database, arguments: argparse.Namespace, review: Review) -> int:
    chosen = releasing.orphans(review)
    held_back = []
    if not arguments.nova and UNKNOWN_TYPE not in (arguments.type or ()):
        held_back = [one for one in chosen if one.holder.consumer_type == UNKNOWN_TYPE]
        chosen = [one for one in chosen if one.holder.consumer_type != UNKNOWN_TYPE]
    too_many = releasing.is_most(review, chosen) and not arguments.force
    release = Release(chosen, held_back, too_many=too_many, review=review, dry_run=not arguments.yes or too_many)
    with consumer_reports.printed(release, _form(arguments)):
        if not release.dry_run:
            with Progress(_WORK, "consumers released", len(chosen)) as progress:
                releasing.give_back(database, chosen, release.released, release.tried, progress.advance)
    if too_many:
        print(
            f"placement-manage: {len(chosen):,} of {review.compared.total():,} consumers would be released, more than "
            "half of all, or of a type: most likely what they are compared with is not complete; --force if it is",
            file=sys.stderr,
        )
        return 1
    others = any(one.kind not in (DiscrepancyKind.ORPHAN, *comparison.HARMLESS) for one in review.found)
    left = held_back or others or review.doubtful or len(release.released) < len(chosen)
    return FOUND if left else 0
