"""Statistics and figures from records; never from training."""

import os

# matplotlib cannot be imported while MPLBACKEND names an unknown backend. No figure here needs a backend.
_named = os.environ.pop("MPLBACKEND", None)
try:
    import matplotlib as _matplotlib
finally:
    if _named is not None:
        os.environ["MPLBACKEND"] = _named
