"""The introduction and related work."""
