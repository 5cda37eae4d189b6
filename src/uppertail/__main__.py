"""`python -m uppertail`."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current folder, whose modules would replace those of packages

from uppertail.cli import main

sys.exit(main())
