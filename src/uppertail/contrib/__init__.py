"""Parts that are seldom used: chosen by name like all others, and held to the same laws."""

from uppertail.contrib.dropout import Dropout
from uppertail.contrib.variational import Variational
