"""Documents and queries, as clients send them."""
