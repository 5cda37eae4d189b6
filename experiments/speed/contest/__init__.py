"""How fast the training loop is, compared with its peers and with the machine's own matrix products."""
