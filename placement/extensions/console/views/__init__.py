"""What pages show, as frozen values that are made from a snapshot.  They know no HTTP and no HTML."""
