"""Which rows are independent, and how far a mean over them can be from the truth.

Claims import it; it imports no solver, no model and no data reader.

===================  =====================================================================================
module               what it answers
===================  =====================================================================================
``bounds``           how far the mean of bounded losses of independent rows can be off
``groups``           the same for the mean of group means
``repeats``          which rows are copies, and which repeat each other by chance
``near_repeats``     which rows are far closer to each other than chance explains
``identifiers``      which columns look like the number of a person or a place
``independence``     how rows are treated, and the words in which a claim says so
===================  =====================================================================================
"""

from .bounds import (
    bernstein_radius,
    clopper_pearson,
    empirical_bernstein,
    hoeffding_radius,
    selection_excess,
)
from .groups import group_interval, group_limits, group_means, hoeffding_kl
from .identifiers import Identifier, find_identifiers
from .independence import INDEPENDENT, Remedy, Rows, check_labels, join_labels, treat_rows
from .near_repeats import NearRepeats, find_near_repeats
from .repeats import Repeats, find_repeats

__all__ = [
    "INDEPENDENT",
    "Identifier",
    "NearRepeats",
    "Remedy",
    "Repeats",
    "Rows",
    "bernstein_radius",
    "check_labels",
    "clopper_pearson",
    "empirical_bernstein",
    "find_identifiers",
    "find_near_repeats",
    "find_repeats",
    "group_interval",
    "group_limits",
    "group_means",
    "hoeffding_kl",
    "hoeffding_radius",
    "join_labels",
    "selection_excess",
    "treat_rows",
]
