"""How what a user leaves open is chosen: facts of the environment, a rule for each open setting, the plan of a run."""

from uppertail.defaults.draft import Choice, Draft, usual_learner
from uppertail.defaults.facts import Facts
from uppertail.defaults.plan import Entry, Plan, decide, in_words, plan_of
from uppertail.defaults.rules import DISCOUNT, known_or_measured
