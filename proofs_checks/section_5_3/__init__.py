"""Section 5.3 and its part of Appendix C."""
