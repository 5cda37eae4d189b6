"""Drivers: they make the steps of a run, compiled or in Python."""
