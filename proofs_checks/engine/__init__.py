"""How claims, checks and mutants are joined, run and reported."""
