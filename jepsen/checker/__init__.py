"""The checks: functions of a history that return violations of invariants."""
