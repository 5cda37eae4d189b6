"""Studies: many runs of `uppertail train`, shared by processes and machines, and their results together."""
