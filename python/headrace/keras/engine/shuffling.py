"""The order in which fit takes the rows of arrays."""

from headrace import _api as tf
from headrace.framework.settings import random_seed


def order(size):
    """A function that gives the rows' order, another one at every call.

    As upstream, the same global seed gives the same orders in every fit.
    """
    seed = random_seed._Context.seed
    rows = tf.range(size, dtype=tf.int64)

    def shuffled():
        return tf.raw_ops.RandomShuffle(value=rows, seed=seed or 0, seed2=0)

    # A trace of its own begins the seed's sequence anew.
    return shuffled if seed is None else tf.function(shuffled)
