"""Workloads of the clients of a run."""
