"""Experiments: one file per figure or headline, settings as constants."""
