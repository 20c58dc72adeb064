"""The places of a finding, with links to the providers and consumers that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from placement.extensions.console.views.cloud import named
from placement.extensions.console.views.event_text import ObjectLink
from placement.extensions.console.views.request_summary import Part
from placement.index.snapshot import Snapshot

#: A uuid, after which a finding has the name of a provider, or before which it says that it is a consumer's.
_THING = re.compile(r"(consumer )?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?: \([^()]*\))?")


def linked(place: str, snapshot: Snapshot) -> Iterator[Part]:
    """Yield a place as its words and what has a page: consumers by uuid, and providers that are there by name."""
    end = 0
    for found in _THING.finditer(place):
        is_consumer, uuid = found.groups()
        slot = snapshot.by_uuid.get(uuid)
        if is_consumer:
            link, beginning, after = ObjectLink("consumers", uuid, uuid), found.start(2), found.end(2)
        elif slot is not None:
            link, beginning, after = ObjectLink("providers", *named(snapshot, slot)), *found.span()
        else:
            continue
        yield place[end:beginning]
        yield link
        end = after
    yield place[end:]
