"""What breaks things: each nemesis does one kind of harm to a cluster, and undoes it."""
