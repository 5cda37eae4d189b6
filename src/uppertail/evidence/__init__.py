"""Evidence: what share of the wide start is left at (s, a), told by the pairs that were seen, not by a network."""

from uppertail.evidence.base import Evidence, EvidenceBuilder, NoEvidence
from uppertail.evidence.counts import Counts
from uppertail.evidence.kernel_counts import KernelCounts
from uppertail.evidence.mixed import MixedNetwork
from uppertail.evidence.pixel_counts import PixelCounts
