"""Fichero: cited answers from a box of Markdown cards."""
