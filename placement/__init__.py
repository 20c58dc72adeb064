"""An implementation of the OpenStack Placement API."""

import os

# numpy's linear algebra, which nothing here uses, starts a thread for each core as soon as it is imported.  The system
# delivers a signal to any thread, and a worker of uWSGI that receives SIGTERM in a thread which is not uWSGI's hangs.
# Every module of the service is imported after this one, and numpy by one of those.
for _library in ("OPENBLAS", "OMP", "MKL", "BLIS"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
