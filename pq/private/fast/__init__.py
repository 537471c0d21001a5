"""The private ring's inner loop as machine code; `pq.private.mechanisms.independent` is its specification."""
