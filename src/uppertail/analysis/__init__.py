"""Statistics and figures from records; never from training."""
