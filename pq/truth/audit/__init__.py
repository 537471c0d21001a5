"""The search for the worst privacy loss between neighbouring columns."""
