"""Tells runs of this user on this machine by a seal at the end of config.yaml that nobody else can make."""

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from uppertail.records.files import write_text
from uppertail.records.folder import CONFIG

SEAL = "# made here: "
"""The beginning of the last line; the rest is the HMAC of all lines before, with the user's own key."""


def write_config(path: Path, options: str) -> None:
    """Writes a config.yaml with its seal, whole or not at all; without one where the user's key cannot be kept."""
    seal = _seal(options)
    write_text(path, options if seal is None else f"{options}{SEAL}{seal}\n")


def made_here(folder: Path) -> bool:
    """Whether this user made the run in a folder on this machine, and nobody has changed its config.yaml since."""
    with contextlib.suppress(OSError, ValueError):
        options, mark, seal = (folder / CONFIG).read_text(encoding="utf-8").rpartition(SEAL)
        expected = _seal(options)
        return bool(mark) and expected is not None and hmac.compare_digest(expected.encode(), seal.strip().encode())
    return False


def _seal(options: str) -> str | None:
    """The HMAC of a text; None where there is no key."""
    try:
        return hmac.new(_key(), options.encode(), hashlib.sha256).hexdigest()
    except (OSError, RuntimeError):  # the folder cannot be written, or the user has no home
        return None


def _key() -> bytes:
    """The user's secret, made when it is first needed."""
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    folder = (named if named.is_absolute() else Path.home() / ".local" / "state") / "uppertail"
    path = folder / "key"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f".key-{os.getpid()}"
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.link(partial, path)
        partial.unlink()
    return path.read_bytes()
