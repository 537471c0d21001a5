"""Commands of a checkout, one file each."""
