"""openstack resource provider overview, openstack resource provider consumers, openstack resource provider history,
openstack resource usage history
"""

from __future__ import annotations

import argparse
import os
from urllib.parse import urlencode

from placement.extensions.terminal import consumers, event_lines, events, filters, overview, usage
from placement.extensions.terminal.openstack.commands import Asking, Rows
from placement.extensions.terminal.style import Style


class ShowOverview(Asking):
    """Show all resource providers as trees, with what they have and what is used."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        filters.add_overview(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        found = filters.overview(self.pages, parsed_args)
        return overview.COLUMNS, list(overview.rows(found, everywhere=True))


class ListConsumers(Asking):
    """Show which consumers hold what of which resource providers."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        filters.add_consumers(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        found = filters.consumers(self.pages, parsed_args)
        return consumers.COLUMNS, list(consumers.rows(found, everywhere=True))


class ShowUsage(Asking):
    """Show what was used of each resource class over time, of all resource providers together."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        usage.add_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        document = self.get("/usage", urlencode(usage.parameters(parsed_args)))
        found = usage.rows(document, parsed_args.by, Style.of(self.app.stdout, os.environ))
        return usage.columns(parsed_args.by), list(found)


class ShowHistory(Asking):
    """Show what has happened to a resource provider, a node or a consumer, also to one that is gone."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        events.add_history(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        return event_lines.COLUMNS, list(event_lines.rows(events.history(self.pages, parsed_args)))
