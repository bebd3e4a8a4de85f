"""Attacks on answers that a language model writes, a model that obeys them all, and what shows that one worked."""
