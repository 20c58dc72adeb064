"""The time for which a request may follow events."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from placement.extensions.v1.event_reader import MAX_STREAM_SECONDS
from placement.extensions.v1.schemas.event import MAX_WAIT

SAMPLE = Path(__file__).parents[4] / "etc" / "uwsgi" / "placement.ini"


@pytest.mark.parametrize("option", ["harakiri", "worker-reload-mercy"])
def test_following_ends_before_uwsgi_kills_the_worker(option):
    [seconds] = re.findall(rf"^{option} = (\d+)$", SAMPLE.read_text(), re.MULTILINE)
    assert max(MAX_STREAM_SECONDS, MAX_WAIT) < int(seconds)
