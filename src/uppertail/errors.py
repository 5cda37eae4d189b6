"""What goes wrong through what was asked, not through a defect."""


class InputError(ValueError):
    """A request that cannot be met: its message is one sentence that names the argument, the value and the remedy."""


def said(error: BaseException) -> str:
    """What an exception says, in one line and without a full stop: for a sentence that quotes it."""
    return " ".join(str(error).split()).rstrip(".")
