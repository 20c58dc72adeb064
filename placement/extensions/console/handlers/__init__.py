"""The endpoints below /console."""
