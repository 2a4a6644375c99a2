"""Two recipes of training_cases.py, which are checked on every change: all of them take minutes.

They are of those without Winograd trajectories, whose limits come from several recipes together.
"""

import training_cases


def cases():
    return training_cases.cases(("adamw", "schedule_warmup_cosine"))
