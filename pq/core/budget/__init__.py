"""Budgets: an account of them, and how they add up."""
