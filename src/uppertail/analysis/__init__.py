"""Statistics and figures from records; never from training."""

import os

# matplotlib refuses to be imported where MPLBACKEND names what it does not know. No figure here is shown by a backend.
_named = os.environ.pop("MPLBACKEND", None)
try:
    import matplotlib as _matplotlib  # noqa: F401
finally:
    if _named is not None:
        os.environ["MPLBACKEND"] = _named
