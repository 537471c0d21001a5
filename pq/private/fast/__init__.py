"""The private ring's inner loop as machine code; `pq.private.mechanisms.exponential` is its specification."""
