"""The paper's experiments as grids of cells that give tidy tables, one module per figure.

Truth ring: nothing here is private.
"""
