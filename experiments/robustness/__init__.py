"""Kills, damaged files, and the same bytes or speed as another checkout."""
