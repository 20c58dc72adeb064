"""The replies of /reshaper"""

from __future__ import annotations

from placement.schemas.success import NO_CONTENT

CREATE = NO_CONTENT
