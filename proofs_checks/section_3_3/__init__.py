"""Section 3.3 and Appendices A.2, A.3 and D."""
