"""What sees the records and gives back only what was paid for."""
