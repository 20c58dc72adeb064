"""The replies of /resource_providers/{uuid}/aggregates"""

from __future__ import annotations

from dataclasses import replace

from placement import microversion as mv
from placement.schemas.declarations import Array, Field, Object, string
from placement.schemas.replies.common import GENERATION
from placement.schemas.success import ok

#: Aggregates are shown as they were written, with or without dashes.
_AGGREGATES = Field("aggregates", Array(string()), required=True)

LIST = REPLACE = ok(Object(_AGGREGATES, replace(GENERATION, since=mv.AGGREGATE_GENERATION)))
