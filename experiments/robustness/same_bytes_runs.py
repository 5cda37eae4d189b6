"""One small training run of a checkout's code, to its end: in one piece, or killed and resumed."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from experiments.robustness.same_bytes_cases import RESUMED

HERE = Path(__file__).resolve().parent
ALTERING = ("JAX_", "XLA_", "PJRT_")
"""How environment variables begin that may alter a run; no run has them."""


class FailedError(Exception):
    """A case that did not run; its text says why."""


def run(checkout: Path, words: list[str], prefix: list[str], killed_after: Path | None = None) -> None:
    """Runs one command of a checkout to its end, or kills it once there is a checkpoint in a folder.

    Raises:
        FailedError: it had another exit code than 0, or came to its end before it was killed.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ALTERING)}
    variables |= {"PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(HERE)]), "JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryFile() as log:
        whole = [*prefix, sys.executable, "-m", "uppertail", *words, "--quiet"]
        process = subprocess.Popen(whole, env=variables, stdout=log, stderr=log, start_new_session=True)
        try:
            while killed_after and process.poll() is None and not any(killed_after.glob("step-*")):
                time.sleep(0.005)
            code = None if killed_after else process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        log.seek(0)
        said = (log.read().decode().strip().splitlines() or ["nothing said"])[-1]
    if killed_after and process.returncode != -signal.SIGKILL:
        raise FailedError(f"it ended, with exit code {process.returncode}, before it was killed: {said}")
    if code:
        raise FailedError(f"exit code {code}: {said}")


def train(checkout: Path, case: str, words: list[str], prefix: list[str], folder: Path) -> None:
    """Runs a case in a folder."""
    words = [*words, f"--out={folder}"]
    if case not in RESUMED:
        return run(checkout, words, prefix)
    run(checkout, words, prefix, folder / "checkpoints")
    time.sleep(1)  # a prefix may be gone before the run behind it, which holds the folder's lock
    return run(checkout, ["resume", str(folder)], prefix)
