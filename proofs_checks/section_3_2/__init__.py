"""Section 3.2 and Appendix A.1."""
