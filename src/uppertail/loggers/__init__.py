"""Where a run's numbers go while it trains: a file of lines, TensorBoard, Weights & Biases, or a logger of your own.

Examples:
    >>> import uppertail as ut
    >>> list(ut.loggers.LOGGERS)
    ['tensorboard', 'wandb']
"""

from uppertail.loggers.base import JSONL, Logger, metrics
from uppertail.loggers.services import LOGGERS, TensorBoard, WandB, named

__all__ = ["JSONL", "LOGGERS", "Logger", "TensorBoard", "WandB", "metrics", "named"]
