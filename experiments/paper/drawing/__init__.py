"""The drawings of the paper's figures, from tables and learned distributions."""
