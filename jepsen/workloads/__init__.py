"""Workloads: what the clients of a run do."""
