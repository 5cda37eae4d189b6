"""`python -m experiments.paper`: makes figures of the paper."""

from experiments.common import ended
from experiments.paper.command import main

if __name__ == "__main__":
    ended(main)
