"""Checkpoints: the whole state of a run on disk."""
