"""Two recipes of training_cases.py and 10 steps of two of recipe_cases.py, which are checked on every change: all of them take minutes.

The first two are of those without Winograd trajectories, whose limits come from several recipes together.
"""

import recipe_cases
import training_cases


def cases():
    yield from training_cases.cases(("adamw", "schedule_warmup_cosine"))
    yield from recipe_cases.short_cases((recipe_cases.bag_of_tricks(10), recipe_cases.hiverge(10)))
