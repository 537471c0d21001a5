"""Other libraries that release quantiles privately, beside `pq` on the same data: `make bench-peers`."""
