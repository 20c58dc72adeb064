"""An implementation of the OpenStack Placement API."""

import os

# The original has a package of this name, too.  Where both are installed in one
# directory, the later one has replaced files of the other.
_SITE = os.path.dirname(__path__[0])
try:
    _neighbours = os.listdir(_SITE)
except OSError:  # an archive, or a directory that must not be listed
    _neighbours = []
if any(name.startswith("openstack_placement-") for name in _neighbours):
    raise ImportError(
        f"{_SITE} has the distribution openstack-placement as well, and each of the two overwrites files of the other: "
        "uninstall openstack-placement and placement-service, and install placement-service again"
    )

# numpy's linear algebra, which nothing here uses, starts a thread for each core as soon as it is imported.  The system
# delivers a signal to any thread, and a worker of uWSGI that receives SIGTERM in a thread which is not uWSGI's hangs.
# Every module of the service is imported after this one, and numpy by one of those.
for _library in ("OPENBLAS", "OMP", "MKL", "BLIS"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
