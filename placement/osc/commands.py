"""What the commands have in common: requests with the session of the client, and how failures are shown."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as keystoneauth
from osc_lib import exceptions
from osc_lib.command import command

from placement.ask import paging, query

Document = Mapping[str, Any]
Rows = tuple[Sequence[str], Sequence[Sequence[object]]]


class Asking(command.Lister):
    """A command that shows a list from the API below /v1, in any format of the client."""

    def get(self, path: str, query_string: str = "") -> dict[str, Any]:
        """Return the document below /v1 at this path; raises CommandError, with the sentence of the service."""
        manager = self.app.client_manager
        service = adapter.Adapter(
            manager.session,
            service_type="placement",
            region_name=manager.region_name,
            interface=manager.interface,
            raise_exc=False,
        )
        try:
            reply = service.get(f"/v1{path}{'?' if query_string else ''}{query_string}")
        except keystoneauth.ClientException as error:
            raise exceptions.CommandError(str(error)) from error
        if reply.status_code != 200:
            raise exceptions.CommandError(f"{_detail(reply)} (HTTP {reply.status_code})")
        try:
            document: dict[str, Any] = reply.json()
        except ValueError as error:
            raise exceptions.CommandError(f"{reply.url} does not answer with JSON.") from error
        return document

    def pages(self, path: str, pairs: Sequence[tuple[str, str]]) -> Iterator[Document]:
        """Return the documents of a list, page by page; raises CommandError."""
        return paging.pages(self.get, path, pairs)


class AskingForPlaces(Asking):
    """A command whose options are those of a query for allocation candidates; it ends with 1 if nothing fits."""

    fits = True

    def run(self, parsed_args: argparse.Namespace) -> int:
        return int(super().run(parsed_args) or not self.fits)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        query.add_arguments(parser)
        return parser

    @staticmethod
    def query_of(parsed: argparse.Namespace) -> str:
        """Return the query string; raises CommandError if there is none."""
        text = query.query_string(parsed.query, parsed.terms)
        if not text:
            raise exceptions.CommandError("There is no query: use --resource, or give a query string.")
        return text


def _detail(reply: Any) -> str:
    try:
        return str(reply.json()["errors"][0]["detail"]).strip()
    except (ValueError, KeyError, IndexError, TypeError):
        return str(reply.reason)
