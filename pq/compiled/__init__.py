"""The private ring's inner loop as machine code; `pq.exponential` is its specification."""
