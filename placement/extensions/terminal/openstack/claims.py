"""``openstack allocation claim``, ``extend`` and ``release``."""

from __future__ import annotations

import argparse
from urllib.parse import urlencode

from osc_lib import exceptions

from placement.extensions.terminal import claiming, claims, releasing
from placement.extensions.terminal.client import Pairs
from placement.extensions.terminal.openstack.commands import Document, NoResponse, Rows, V1Command
from placement.extensions.terminal.style import Style


class ClaimAllocations(V1Command):
    """Find a place for a query and claim it; with --file, claim several entries at once.

    The exit code is 1 if a claim is refused.
    """

    granted = True

    def run(self, parsed_args: argparse.Namespace) -> int:
        return int(super().run(parsed_args) or not self.granted)

    added_options = (claiming.add_claim,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        body = claiming.claim(parsed_args, self.owner, lambda consumer: self.get(f"/claims/{consumer}"))
        try:
            document = self.send("POST", "/claims", "dry_run=true" if parsed_args.dry_run else "", body)
        except NoResponse as error:
            if parsed_args.dry_run:
                raise
            raise exceptions.CommandError(f"{error}  {claiming.retry_advice(parsed_args, body)}") from error
        self.granted = claims.granted(document)
        return claims.COLUMNS, list(claims.rows(claims.results(document), everywhere=True))


class ExtendClaim(V1Command):
    """Set or remove the expiry of a consumer's claim."""

    added_options = (claiming.add_extend,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        document = self.send("POST", f"/claims/{parsed_args.consumer}/extend", "", claiming.extend(parsed_args))
        return claims.COLUMNS, list(claims.rows([document], everywhere=True))


class ReleaseAllocations(V1Command):
    """Release named consumers or, after confirmation, the consumers that meet conditions."""

    added_options = (releasing.add_release,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        try:
            released = releasing.release(self._delete, self.pages, parsed_args, Style())
        except releasing.Declined as error:
            raise exceptions.CommandError(str(error)) from error
        return claims.RELEASED, list(claims.released_rows(released))

    def _delete(self, query: Pairs) -> Document:
        return self.send("DELETE", "/claims", urlencode(query))
