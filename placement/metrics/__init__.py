"""Metrics for Prometheus (docs/observability.rst).

    definitions      the metrics, and the events that change them
    instruments      factories for the metrics of the core and of extensions
    allocated_file   metric files with preallocated disk space
    directory        the directory shared by all processes, and the sums

Each process of the service has its own files in a shared directory, and the separate process ``placement-metrics``
exports the sums.  A scrape therefore takes no time from a worker, works even if all workers are busy or dead, and needs
no token.  No counts are lost when a worker ends.

The submodules are not imported unless ``[metrics]directory`` is set, so prometheus_client need not be installed.
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
    """Start metrics in this process and its forked children, unless they are already started.

    If the disk is full, the process runs without metrics.

    Args:
        path: The directory, which cannot change during the life of the process.
        extensions: The extensions that may add metrics.

    Raises:
        StartError: The package prometheus_client is not installed, or the directory cannot be used.
    """
    if _started:
        return
    try:
        from prometheus_client import values

        from placement.metrics.allocated_file import AllocatedFile
        from placement.metrics.definitions import Metrics
        from placement.metrics.directory import Directory
    except ImportError:
        raise StartError(
            f"[metrics]directory: prometheus_client is not installed: {package.install_command('metrics')}"
        ) from None
    # The library has read the variable on import, before it was set, so its value class is created again.
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


#: The directory as the only item, once metrics are started.
_started: list[str] = []
