"""Section 4.2 and Appendix B.1."""
