"""What goes wrong through what was asked, not through a defect."""


class InputError(ValueError):
    """A request that cannot be met: its message is one sentence that names the argument, the value and the remedy."""
