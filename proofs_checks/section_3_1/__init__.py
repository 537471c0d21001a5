"""Section 3.1."""
