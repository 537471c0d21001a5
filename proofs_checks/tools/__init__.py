"""Mathematics that the checks of several sections share."""
