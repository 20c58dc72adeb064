"""Base classes of the commands, which send requests through the session of ``openstack``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as keystoneauth
from osc_lib import exceptions
from osc_lib.command import command

from placement.extensions.terminal import failures, paging, query

Document = Mapping[str, Any]
Rows = tuple[Sequence[str], Sequence[Sequence[object]]]
Options = tuple[Callable[[argparse.ArgumentParser], object], ...]


class NoResponse(exceptions.CommandError):
    """The service did not respond, or responded with a server error: the request may or may not have taken effect."""


class V1Command(command.Lister):
    """A command that shows a list from the v1 API."""

    #: Functions that add the options of the command to a parser.
    added_options: ClassVar[Options] = ()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        for add in self.added_options:
            add(parser)
        return parser

    def get(self, path: str, query_string: str = "") -> dict[str, Any]:
        """Return the document at a path of the v1 API; failures as for ``send``."""
        return self.send("GET", path, query_string)

    def send(self, method: str, path: str, query_string: str, body: Any = None) -> dict[str, Any]:
        """Send a request to the v1 API, and return the document of the response.

        Raises:
            CommandError: The service refuses the request; the text is its sentence.  A response of POST /v1/claims with
                results is returned even if requests in it are refused.
            NoResponse: The service did not respond, or responded with a server error.
        """
        manager = self.app.client_manager
        service = adapter.Adapter(
            manager.session,
            service_type="placement",
            region_name=manager.region_name,
            interface=manager.interface,
            raise_exc=False,
        )
        try:
            reply = service.request(f"/v1{path}{'?' if query_string else ''}{query_string}", method, json=body)
        except keystoneauth.ClientException as error:
            raise NoResponse(str(error)) from error
        document = _document(reply)
        if reply.status_code >= HTTPStatus.MULTIPLE_CHOICES and "results" not in document:
            error_class = (
                NoResponse if reply.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR else exceptions.CommandError
            )
            raise error_class(f"{_detail(reply, document)} (HTTP {reply.status_code})")
        if not document:
            raise exceptions.CommandError(f"The response of {reply.url} is not JSON.")
        return document

    @property
    def owner(self) -> dict[str, str]:
        """The project and the user of the caller, if known, as fields of a claim."""
        access = self.app.client_manager.auth_ref
        ids = {"project_id": getattr(access, "project_id", None), "user_id": getattr(access, "user_id", None)}
        return {name: value for name, value in ids.items() if value}

    def pages(self, path: str, pairs: Sequence[tuple[str, str]]) -> Iterator[Document]:
        """Return the pages of a list, or raise CommandError."""
        return paging.pages(self.get, path, pairs)


class CandidatesCommand(V1Command):
    """A command with the options of a query for allocation candidates; its exit code is 1 if nothing fits."""

    added_options: ClassVar[Options] = (query.add_arguments,)
    fits = True

    def run(self, parsed_args: argparse.Namespace) -> int:
        return int(super().run(parsed_args) or not self.fits)

    @staticmethod
    def query_of(parsed: argparse.Namespace) -> str:
        """Return the query string; raise CommandError if it is empty."""
        text = query.query_string(parsed.query, parsed.terms)
        if not text:
            raise exceptions.CommandError("The query is missing: use --resource, or give a query string.")
        return text


def _document(reply: Any) -> dict[str, Any]:
    """Return the document of a response; empty without one."""
    try:
        document = reply.json()
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _detail(reply: Any, document: Document) -> str:
    try:
        return failures.message(str(document["errors"][0]["detail"]))
    except (KeyError, IndexError, TypeError):
        return str(reply.reason)
