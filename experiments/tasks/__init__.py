"""Environments in which learners are measured: settings, and what is kept of a run."""
