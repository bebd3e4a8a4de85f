"""Commands that measure; each prints its figures with the machine they come from."""
