"""The HTTP layer of the service, for any API."""
