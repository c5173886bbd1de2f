"""Seeds: the global one, and the pair that a random op gets."""

import random as _python_random

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework.settings import config

DEFAULT_GRAPH_SEED = 87654321
_MAX = 2**31 - 1


class _Context:
    """The eager context's seed and its generator of op seeds."""

    seed = None
    random = _python_random.Random(DEFAULT_GRAPH_SEED)

    @classmethod
    def _next_op_seed(cls):
        return cls.random.randint(0, _MAX)


def holder():
    """What has the global seed, or None, as `seed`: a graph, or the eager context."""
    return stack.current() or _Context


def set_seed(seed):
    """Sets the global seed: the same program then draws the same numbers.

    With None nothing is set any more, as at a program's start.
    """
    here = holder()
    here.seed = None if seed is None else int(seed)
    if here is _Context:
        _Context.random = _python_random.Random(_Context.seed)
        _headrace.forget_ops()


def get_seed(op_seed):
    """(seed, seed2) of an op with that seed; (None, None) where nothing is set.

    Raises RuntimeError for these where operations must be deterministic.
    """
    here = holder()
    global_seed = here.seed
    if global_seed is not None and op_seed is None:
        op_seed = here._next_op_seed()
    if global_seed is None and op_seed is None:
        if config.is_op_determinism_enabled():
            raise RuntimeError(
                "Random ops require a seed to be set when determinism is enabled. "
                "Please set a seed before running the op, e.g. by calling "
                "tf.random.set_seed(1)."
            )
        return None, None
    if global_seed is None:
        global_seed = DEFAULT_GRAPH_SEED
    pair = int(global_seed) % _MAX, int(op_seed) % _MAX
    return (0, _MAX) if pair == (0, 0) else pair


def op_seeds(op_seed):
    """The same as integers: zeros where nothing is set."""
    first, second = get_seed(op_seed)
    return (first or 0), (second or 0)
