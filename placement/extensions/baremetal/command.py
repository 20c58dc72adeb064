"""``placement-manage baremetal``: import of nodes from a running Ironic (docs: baremetal-import)."""

from __future__ import annotations

import argparse
import sys

from oslo_config import cfg

from placement import errors, extension
from placement.cmd import program
from placement.cmd.progress import Progress
from placement.cmd.text_table import framed
from placement.db.database import Database
from placement.db.schema import schema
from placement.db.upkeep import standard
from placement.extensions.baremetal import importing
from placement.extensions.baremetal.importing import Comparison, NodeImport
from placement.extensions.baremetal.ironic import Ironic, Unreadable
from placement.objects.consumer import Owner

_SUMMARY = "Import the nodes of a running Ironic, with claims for the nodes in use."


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``baremetal`` and its actions."""
    baremetal = commands.add_parser("baremetal", help="nodes of the Bare Metal API")
    baremetal.set_defaults(action=lambda _: _show_help(baremetal))
    actions = baremetal.add_subparsers(title="actions", dest="baremetal_action")
    import_parser = actions.add_parser("import", help=_SUMMARY, description=_SUMMARY)
    import_parser.set_defaults(action=import_nodes)
    source = import_parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--os-cloud", metavar="<name>", help="the cloud in clouds.yaml with the Ironic service")
    source.add_argument("--endpoint", metavar="<url>", help="the URL of an Ironic service without Identity")
    import_parser.add_argument(
        "--username",
        metavar="<name>",
        help="with --endpoint: the http_basic user; the password is read from $OS_PASSWORD",
    )
    import_parser.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")


def _show_help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def import_nodes(conf: cfg.ConfigOpts) -> int:
    """Import the nodes, print differences and failures, and return the exit code."""
    arguments = conf.command
    with program.connected(conf) as database:
        schema.require_current(database.reading_engine, extension.additions(conf))
        try:
            comparison = _compare(database, Ironic(arguments))
        except Unreadable as reason:
            print(f"placement-manage: {' '.join(str(reason).split())}", file=sys.stderr)
            return 1
        group = conf.placement
        owner = Owner(group.incomplete_consumer_project_id, group.incomplete_consumer_user_id)
        failed = {} if arguments.dry_run else _write(database, comparison, owner)
    _print(comparison, failed, claimed=not arguments.dry_run)
    if arguments.dry_run:
        print("Dry run: nothing was written.")
    return 1 if failed or any(node.findings for node in comparison.nodes) else 0


def _compare(database: Database, ironic: Ironic) -> Comparison:
    with Progress("baremetal import", "nodes read") as progress:
        # Allocations before nodes: the node of an allocation that ends in between is free, and the allocation ignored.
        allocations = list(ironic.allocations())
        nodes = []
        for node in ironic.nodes():
            nodes.append(node)
            progress.advance(1)
    return database.read(lambda db: importing.compare(db, nodes, allocations))


def _write(database: Database, comparison: Comparison, owner: Owner) -> dict[str, str]:
    """Write the differences, and return the reason of each failure, by the uuid of the node."""
    failed = {}
    changed = [node for node in comparison.nodes if node.has_changes]
    standard.insert(database)  # the standard traits are missing until a service has started on the database
    with Progress("baremetal import", "nodes written", len(changed)) as progress:
        importing.free_names(database, comparison)
        for node in changed:
            try:
                importing.write(database, node, owner)
            except errors.Unavailable:
                raise
            except errors.Failure as failure:
                failed[node.uuid] = str(failure)
            progress.advance(1)
    return failed


def _print(comparison: Comparison, failed: dict[str, str], *, claimed: bool) -> None:
    for node in comparison.nodes:
        for line in _lines(node, failed.get(node.uuid), claimed=claimed):
            print(f"{node.title}: {line}")
    nodes = [node for node in comparison.nodes if not node.excluded]
    rows = (
        ("new", sum(not node.exists for node in nodes)),
        ("changed", sum(node.exists and node.has_changes for node in nodes)),
        ("unchanged", sum(not node.has_changes for node in nodes)),
        ("in use in Ironic, claimed", sum(node.unclaimed is not None and node.uuid not in failed for node in nodes)),
        ("left different", sum(bool(node.findings) or node.uuid in failed for node in comparison.nodes)),
        ("only here", comparison.only_here),
    )
    print(framed(("Nodes", "Number"), *rows))


def _lines(node: NodeImport, failure: str | None, *, claimed: bool) -> list[str]:
    lines = [] if node.exists or node.excluded else ["new"]
    if not node.excluded:
        lines += node.differences
        if node.unclaimed is not None:
            outcome = ": claimed" if claimed and failure is None else ""
            lines.append(f"in use in Ironic by {node.unclaimed}, not claimed here{outcome}")
        if node.allocation is not None:
            lines.append(f"allocation {node.allocation['uuid']}: new")
    lines += [f"not imported: {finding}" if node.excluded else finding for finding in node.findings]
    return lines if failure is None else [*lines, f"failed: {failure}"]
