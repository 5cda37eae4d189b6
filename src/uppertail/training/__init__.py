"""Training: a whole run, compiled."""
