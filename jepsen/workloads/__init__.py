"""What clients do in a run."""
