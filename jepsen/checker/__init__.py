"""The invariants: functions of a history that return what violates them."""
