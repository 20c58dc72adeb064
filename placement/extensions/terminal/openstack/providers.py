"""openstack resource provider overview, openstack resource provider consumers, openstack resource provider history,
openstack resource usage history
"""

from __future__ import annotations

import argparse
import os
from urllib.parse import urlencode

from placement.extensions.terminal import consumers, event_lines, events, filters, overview, usage_history
from placement.extensions.terminal.openstack.commands import Asking, Rows
from placement.extensions.terminal.style import Style


class ShowOverview(Asking):
    """Show all resource providers as trees, with what they have and what is used."""

    added_options = (filters.add_overview,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        found = filters.overview(self.pages, parsed_args)
        return overview.COLUMNS, list(overview.rows(found, everywhere=True))


class ListConsumers(Asking):
    """Show which consumers hold what of which resource providers."""

    added_options = (filters.add_consumers,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        found = filters.consumers(self.pages, parsed_args)
        return consumers.COLUMNS, list(consumers.rows(found, everywhere=True))


class ShowUsage(Asking):
    """Show what was used of each resource class over time, of all resource providers together."""

    added_options = (usage_history.add_options,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        document = self.get("/usage", urlencode(usage_history.parameters(parsed_args)))
        found = usage_history.rows(document, parsed_args.by, Style.of(self.app.stdout, os.environ))
        return usage_history.columns(parsed_args.by), list(found)


class ShowHistory(Asking):
    """Show what has happened to a resource provider, a node or a consumer, also to one that is gone."""

    added_options = (events.add_history,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        return event_lines.COLUMNS, list(event_lines.rows(events.history(self.pages, parsed_args)))
