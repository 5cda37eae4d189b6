"""Environments of Gymnasium. The only folder that imports it."""
