"""``openstack allocation candidate explain`` and ``count``."""

from __future__ import annotations

import argparse

from placement.extensions.terminal import capacity, explain
from placement.extensions.terminal.openstack.commands import CandidatesCommand, Rows


class ExplainCandidates(CandidatesCommand):
    """Explain why a query has allocation candidates or none, rule by rule, and suggest changes that would help.

    The exit code is 1 if nothing fits.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        document = self.get("/explain", self.query_of(parsed_args))
        self.fits = explain.fits(document)
        return explain.COLUMNS, list(explain.rows(document, everywhere=True))


class CountCandidates(CandidatesCommand):
    """Show the number of times that a query could be placed, in total, by tree and by aggregate."""

    added_options = (*CandidatesCommand.added_options, capacity.add_options)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        document = self.get("/capacity", self.query_of(parsed_args) + capacity.parameters(parsed_args))
        self.fits = capacity.fits(document)
        return capacity.COLUMNS, list(capacity.rows(document))
