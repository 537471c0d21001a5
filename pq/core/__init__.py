"""The ring that sees no data: the verified mathematics."""
