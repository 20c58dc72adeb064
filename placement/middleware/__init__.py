"""The shared layers (docs: layers), each a callable ``(application, service) -> application``.

They are plain WSGI, and every request passes through all of them, so each may take microseconds only.  A layer that the
configuration does not enable returns its application unchanged and costs nothing.  A layer inside ``Authentication``
may raise a Failure, which is rendered in the form of the API.

profiler        profiles and osprofiler traces of requests
libraries       the layers of oslo.middleware: headers of proxies, CORS
request_log     request ids, and the log line of each request
mount           the API of a path, syntax checks, common headers
health          health checks for load balancers
lease_sweeps    release of expired leases after responses
allowed_hosts   protection against DNS rebinding
authentication  the caller of a request, by the configured strategy
http_basic      the strategy http_basic: user names and passwords
passwords       password checks against a file
guess_limit     a rate limit on wrong passwords
keystone        the strategy keystone: tokens of the Identity service
keystone_check  the check that the Identity service can validate tokens
"""
