"""A cache of the installed distributions for the `openstack` command, which searches for them at every start."""

from __future__ import annotations

import functools
from importlib import metadata

metadata.packages_distributions = functools.cache(metadata.packages_distributions)
metadata.packages_distributions()
