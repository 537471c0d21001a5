"""Section 4.3 and Appendices B.2 and E.2."""
