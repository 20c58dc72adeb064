"""The endpoints of the v1 API."""
