"""Studies: many runs of `uppertail train`, shared by processes and machines, and what they show together."""
