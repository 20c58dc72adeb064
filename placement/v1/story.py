"""What the history is asked about: a provider or a node, by uuid or name, or a consumer; also one that is gone."""

from __future__ import annotations

import uuid

from placement.db.transaction import Reading
from placement.http.request import Request
from placement.objects import event
from placement.v1 import lookup
from placement.v1.failures import UnknownProvider


def find(req: Request, ident: str) -> str | None:
    """Return a uuid for a uuid or a name.

    That of a provider which is present goes first, then that of a node, and then that of the provider or node which had
    the name last.

    Returns:
        None if nothing has the name, or had it.  A uuid is returned whether something has it or not.
    """
    snapshot = req.index.current()
    slot = lookup.find(snapshot, ident)
    if slot is not None:
        return snapshot.provider(slot).uuid
    req.database.history.order()

    def work(db: Reading) -> str | None:
        return event.node_named(db, ident) or event.named(db, ident)

    return req.read(work) or _uuid(ident)


def of_parameter(req: Request, ident: str) -> str:
    """Return the uuid of the provider that a parameter names.

    Raises:
        UnknownProvider: It is no uuid, and no provider or node has the name, or had it (400).
    """
    found = find(req, ident)
    if found is None:
        raise UnknownProvider(parameter="provider", provider=ident)
    return found


def _uuid(ident: str) -> str | None:
    """Return a uuid in the form with dashes; None if it is none."""
    try:
        return str(uuid.UUID(ident))
    except ValueError:
        return None
