"""Machine checks of the paper's claims: a folder for each section, with rows, checks and the broken variants that each
check must reject.
"""
