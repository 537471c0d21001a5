"""The ring that sees the data and gives back only what was paid for."""
