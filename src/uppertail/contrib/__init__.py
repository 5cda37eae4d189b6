"""Parts that are seldom used: chosen by name like all others, and held to the same laws."""

from uppertail.contrib.draws import Dropout, Variational
