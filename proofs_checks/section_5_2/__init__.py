"""Section 5.2, its part of Appendix C, and Appendix E.1."""
