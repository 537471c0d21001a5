"""Section 5.1 and its part of Appendix C."""
