"""The files of a run: read and written here, without jax."""

from uppertail.records.episodes import FINAL_WINDOW, Episodes, arrays_of, episode_text, median_episode, table_of
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
    arrays_below,
    claim_folder,
    claim_unused,
    config_of,
    digest,
    locked,
    made_here,
    output_errors,
    require_unused,
    unused_folder,
    write_arrays,
    write_bytes,
    write_config,
    write_errors,
    write_json,
    write_text,
)
from uppertail.records.record import Distributions, RunRecord, describe, plain, write_run, write_summary
from uppertail.records.run_folder import RunFolder, find_runs
