"""The files of a run: read and written here, without jax."""

from uppertail.records.episodes import FINAL_WINDOW, Episodes, arrays_of, episode_text, median_episode, table_of
from uppertail.records.files import arrays_below, write_bytes, write_errors, write_json, write_text
from uppertail.records.folder import (
    CHECKPOINT_PATTERN,
    CHECKPOINTS,
    CONFIG,
    CURVE,
    DISTRIBUTIONS,
    EPISODES,
    EVALUATION,
    LOG,
    NETWORKS,
    NEXT_CONFIG,
    REPORT,
    SUMMARY,
    TENSORBOARD,
    WANDB_ID,
    claim_folder,
    claim_unused,
    config_of,
    locked,
    made_here,
    output_errors,
    require_unused,
    unused_folder,
    write_config,
)
from uppertail.records.record import RunRecord, describe, plain, write_run
from uppertail.records.run_folder import RunFolder, find_runs
