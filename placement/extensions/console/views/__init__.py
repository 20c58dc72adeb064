"""View models of the pages: frozen values made from a snapshot, independent of HTTP and HTML."""
