"""An interactive report over runs: one HTML file that needs no network."""
