"""Machine checks of the paper's claims, one module for each part of the paper, with the broken variants they must
reject."""
