"""The places of a doctor finding, with links to the providers and consumers in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from placement.extensions.console.views.cloud import provider_name
from placement.extensions.console.views.event_text import ObjectLink
from placement.extensions.console.views.request_summary import Part
from placement.index.snapshot import Snapshot

#: A uuid, with "consumer" before it or the name of a provider in parentheses after it.
_OBJECT = re.compile(r"(consumer )?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?: \([^()]*\))?")


def linked_parts(place: str, snapshot: Snapshot) -> Iterator[Part]:
    """Yield the parts of a place: text, links to consumers by uuid, and links to existing providers by name."""
    end = 0
    for match in _OBJECT.finditer(place):
        is_consumer, uuid = match.groups()
        slot = snapshot.by_uuid.get(uuid)
        if is_consumer:
            link, link_start, link_end = ObjectLink("consumers", uuid, uuid), match.start(2), match.end(2)
        elif slot is not None:
            link, link_start, link_end = ObjectLink("providers", *provider_name(snapshot, slot)), *match.span()
        else:
            continue
        yield place[end:link_start]
        yield link
        end = link_end
    yield place[end:]
