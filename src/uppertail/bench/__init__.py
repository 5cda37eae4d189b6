"""How fast the training loop is: beside its peers, and as a share of what the machine can multiply."""
