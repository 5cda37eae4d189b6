"""What several benchmarks share. Importing it lets a script import `reproduction`, from the root of the checkout."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))
