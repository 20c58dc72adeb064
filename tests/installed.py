"""Whoever imports this before others knows what is installed: the `openstack` command finds it out at every start."""

from __future__ import annotations

import functools
from importlib import metadata

metadata.packages_distributions = functools.cache(metadata.packages_distributions)
metadata.packages_distributions()
