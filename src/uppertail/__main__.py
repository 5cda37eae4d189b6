"""`python -m uppertail`."""

import sys

from uppertail.cli import main

sys.exit(main())
