"""Where other projects' tests look for our fixtures; our own tests are not here."""
