"""Mechanisms, one file each."""
