"""``openstack resource provider overview``, ``consumers`` and ``history``, and ``openstack resource usage history``."""

from __future__ import annotations

import argparse
import os
from urllib.parse import urlencode

from placement.extensions.terminal import consumers, event_lines, events, filters, overview, usage_history
from placement.extensions.terminal.openstack.commands import Rows, V1Command
from placement.extensions.terminal.style import Style


class ShowOverview(V1Command):
    """Show all resource providers as trees, with their inventories and usage."""

    added_options = (filters.add_overview,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        providers = filters.overview(self.pages, parsed_args)
        return overview.COLUMNS, list(overview.rows(providers, everywhere=True))


class ListConsumers(V1Command):
    """Show consumers and their allocations."""

    added_options = (filters.add_consumers,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        matches = filters.consumers(self.pages, parsed_args)
        return consumers.COLUMNS, list(consumers.rows(matches, everywhere=True))


class ShowUsage(V1Command):
    """Show the usage of each resource class over time, for all resource providers together."""

    added_options = (usage_history.add_options,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        document = self.get("/usage", urlencode(usage_history.parameters(parsed_args)))
        style = Style.for_stream(self.app.stdout, os.environ)
        return usage_history.columns(parsed_args.by), list(usage_history.rows(document, parsed_args.by, style))


class ShowHistory(V1Command):
    """Show the events of a resource provider, a node or a consumer, even a deleted one."""

    added_options = (events.add_history,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        return event_lines.COLUMNS, list(event_lines.rows(events.history(self.pages, parsed_args)))
