"""Section 4.1."""
