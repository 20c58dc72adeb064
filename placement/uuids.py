"""Uuids in requests: the accepted spellings, and the canonical form."""

from __future__ import annotations

import re
import uuid

from oslo_utils import uuidutils

#: The form with dashes, in any case.
DASHED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def is_uuid(text: str) -> bool:
    """Whether a text spells a uuid: in any case, with or without dashes, in braces or with ``urn:uuid:``."""
    # Nearly all uuids have dashes, and the pattern is five times as fast.
    return DASHED.fullmatch(text) is not None or uuidutils.is_uuid_like(text)


def canonical(text: str) -> str | None:
    """Return the uuid that a text spells, in lower case and with dashes; None if the text is not a uuid."""
    if DASHED.fullmatch(text) is not None:
        return text.lower()
    return str(uuid.UUID(text)) if uuidutils.is_uuid_like(text) else None


def spellings(text: str) -> tuple[str, ...]:
    """Return the text and, if it spells a uuid differently, the canonical form.

    A consumer may have either: ``POST /allocations`` stores uuids as the client spells them, other requests store the
    canonical form.
    """
    return tuple(dict.fromkeys((text, canonical(text) or text)))
