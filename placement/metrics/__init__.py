"""Metrics for Prometheus (docs/observability.rst).

    definitions      the metrics, and the events that change them
    instruments      how the core and its extensions create metrics
    allocated_file   the files of a process's metrics, which never meet a full disk
    directory        the shared directory of all processes, and the sums

Each process of the service has files of its own in a directory that all processes share.  ``placement-metrics`` is a
separate process that exports the sums.  So a scrape takes no time from a worker, is answered when all workers are busy
or dead, and needs no token; and no counts are lost when a worker ends.

Nothing here is imported unless ``[metrics]directory`` is set, so prometheus_client need not be installed.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable

from placement import package
from placement.errors import StartError
from placement.extension import Extension

LOG = logging.getLogger(__name__)


def start(path: str, extensions: Iterable[Extension] = ()) -> None:
    """Start metrics in this process and its forked children; does nothing if they were started before.

    If the disk is full, the process runs without metrics.

    Args:
        path: The directory; a process uses one for its whole life.
        extensions: Those that may add metrics.

    Raises:
        StartError: The package prometheus_client is missing, or the directory cannot be used.
    """
    if _started:
        return
    try:
        from prometheus_client import values

        from placement.metrics.allocated_file import AllocatedFile
        from placement.metrics.definitions import Metrics
        from placement.metrics.directory import Directory
    except ImportError:
        raise StartError(f"[metrics]directory: prometheus_client is missing: {package.install('metrics')}") from None
    # The library reads the variable when it is imported, which has happened, and in each process.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = path
    values.MmapedDict = AllocatedFile  # type: ignore[attr-defined]
    values.ValueClass = values.get_value_class()
    try:
        directory = Directory(path)
        directory.join()
        _started.append(path)
        Metrics(directory.join, extensions).connect()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise StartError(f"[metrics]directory: {error}") from error
        LOG.error("This process has no metrics: %s", error)


#: The directory, once metrics are started.
_started: list[str] = []
