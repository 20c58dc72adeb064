"""What runs: services on a database, of which a nemesis breaks one part at a time."""
