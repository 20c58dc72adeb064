"""An implementation of the OpenStack Placement API."""

import os

# OpenStack Placement has a package with the same name.  If both are installed in one directory, the one installed
# later has overwritten files of the other.
_SITE = os.path.dirname(__path__[0])
try:
    _neighbours = os.listdir(_SITE)
except OSError:  # an archive, or a directory that must not be listed
    _neighbours = []
if any(name.startswith("openstack_placement-") for name in _neighbours):
    raise ImportError(
        f"{_SITE} also contains the distribution openstack-placement, and the two overwrite each other's files: "
        "uninstall openstack-placement and placement-service, then install placement-service again"
    )

# On import, numpy's linear algebra (unused here) starts a thread per core.  The kernel delivers a signal to any thread,
# and a uWSGI worker hangs if a thread other than uWSGI's receives SIGTERM.  This module is imported before numpy.
for _library in ("OPENBLAS", "OMP", "MKL", "BLIS"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
