"""What a run leaves behind: read and written here, without jax."""

from uppertail.records.episodes import FINAL_WINDOW, Episodes, episode_text, median_episode
from uppertail.records.folder import (
    CHECKPOINT_PATTERN,
    CHECKPOINTS,
    CONFIG,
    CURVE,
    EPISODES,
    EVALUATION,
    FILES,
    LOG,
    NETWORKS,
    SUMMARY,
    TENSORBOARD,
    WANDB_ID,
    claim_folder,
    config_of,
    disk_errors,
    output_errors,
    unused_folder,
)
from uppertail.records.run import RunRecord, write
from uppertail.records.writing import write_bytes, write_text

__all__ = [
    "CHECKPOINTS",
    "CHECKPOINT_PATTERN",
    "CONFIG",
    "CURVE",
    "EPISODES",
    "EVALUATION",
    "FILES",
    "FINAL_WINDOW",
    "LOG",
    "NETWORKS",
    "SUMMARY",
    "TENSORBOARD",
    "WANDB_ID",
    "Episodes",
    "RunRecord",
    "claim_folder",
    "config_of",
    "disk_errors",
    "episode_text",
    "median_episode",
    "output_errors",
    "unused_folder",
    "write",
    "write_bytes",
    "write_text",
]
