"""Drawing from numbers that are given; a leaf."""
