"""Numbers about the service, for Prometheus.

    counted     what is counted, and which signals of the layers below tell it
    reserved    the files in which a process counts
    directory   where every process counts, and how all of it is added up
    page        what Prometheus is shown

Each process of the service counts for itself, in files of its own in a directory that all processes share.
``placement-metrics`` is another process that shows their sum.  So a scrape takes no time from a worker, is answered
when all workers are busy or dead, and needs no token; and nothing is lost when a worker ends.

Nothing here runs unless ``[metrics]directory`` is set, and prometheus_client need not even be there.
"""

from __future__ import annotations

import errno
import logging
import os

from placement.errors import StartError

LOG = logging.getLogger(__name__)


def start(path: str) -> None:
    """Count from now on, in this process and in those that are forked off it; raises StartError.

    Nothing if this process counts already.  The numbers are those of a process: it counts in one directory.  Where the
    disk is full it counts nothing, which is no reason to serve nothing.
    """
    if _counting:
        return
    try:
        from prometheus_client import values

        from placement.metrics.counted import Metrics
        from placement.metrics.directory import Directory
        from placement.metrics.reserved import Reserved
    except ImportError:
        raise StartError("[metrics]directory: prometheus_client is missing, the extra 'metrics'") from None
    # Where the library looks, at its import - which was before - and in each process.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = path
    values.MmapedDict = Reserved  # type: ignore[misc]
    values.ValueClass = values.get_value_class()
    try:
        directory = Directory(path)
        directory.join()
        _counting.append(path)
        Metrics(directory.join).connect()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise StartError(f"[metrics]directory: {error}") from error
        LOG.error("This process counts nothing for its metrics: %s", error)


#: The directory, once there is one.
_counting: list[str] = []
