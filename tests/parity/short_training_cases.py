"""Two recipes of training_cases.py and 5 to 10 steps of each of recipe_cases.py, which are checked on every change: all of them take minutes.

The first two are of those without Winograd trajectories, whose limits come from several recipes together.
"""

import recipe_cases
import training_cases


def cases():
    yield from training_cases.cases(("adamw", "schedule_warmup_cosine"))
    makers = {recipe_cases.airbench94: 6, recipe_cases.muon: 5, recipe_cases.bag_of_tricks: 10, recipe_cases.hiverge: 10}
    yield from recipe_cases.short_cases([make(steps) for make, steps in makers.items()])
