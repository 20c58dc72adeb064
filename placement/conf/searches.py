"""The options of searches."""

from __future__ import annotations

from oslo_config import cfg

from placement import errors
from placement.search.find import Settings
from placement.search.query.query import SearchQuery


def settings_of(conf: cfg.ConfigOpts) -> Settings:
    """Return the settings of every search."""
    options = conf.placement
    return Settings(
        max_candidates=None if options.max_allocation_candidates < 0 else options.max_allocation_candidates,
        strategy=options.allocation_candidates_generation_strategy,
        randomize=options.randomize_allocation_candidates,
        operations=options.max_search_operations,
        memory=options.max_search_memory * 2**20,
    )


def check_demands(query: SearchQuery, conf: cfg.ConfigOpts) -> None:
    """Raise TooManyGroups if a search has more to find than is allowed."""
    most = conf.placement.max_request_groups
    if query.demand_count > most:
        raise errors.TooManyGroups(count=query.demand_count, most=most)
