"""Drivers: what makes the steps of a run, compiled or in Python."""
