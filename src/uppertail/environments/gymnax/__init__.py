"""Compiled environments of gymnax and of XLand-MiniGrid, and any in gymnax's form."""
