"""Dataset.rejection_resample."""

import numpy as np

from headrace._load import raw
from headrace.data.dataset import Dataset, method
from headrace.data.sources import sample_from_datasets
from headrace.framework import conversion, execution
from headrace.ops.random import random_ops

_SMOOTHING = 10  # examples counted of each class before the first one comes
_ESTIMATED_AT_ONCE = 32  # examples between two estimates of the distribution


@method
def rejection_resample(
    self, class_func, target_dist, initial_dist=None, seed=None, name=None
):
    """(class, element) pairs, drawn so that classes come as `target_dist` says.

    class_func(*element) is an int32 or int64 scalar; the distributions are vectors
    of a number each class. `initial_dist` is counted along the way where it is not
    given.
    """
    target = conversion.convert_to_tensor(target_dist)

    def classified(*args):
        value = args[0] if len(args) == 1 else args
        return conversion.convert_to_tensor(class_func(*args)), value

    pairs = self.map(classified)
    if initial_dist is not None:
        initial = conversion.convert_to_tensor(initial_dist)
        accepted, kept = _mixed(initial, target)
        rates = Dataset.from_tensors(accepted).repeat()
        known = execution.get_static_value(kept)
        # Known weights of zero leave a dataset out.
        share = kept if known is None else float(known)
        weights = [share, 1 - share]
        if known is None:
            weights = raw.Pack(weights)
    else:
        mixes = _estimates(pairs, target).map(lambda d: _mixed(d, target))
        rates = mixes.map(lambda accepted, _: accepted)
        weights = mixes.map(lambda _, kept: raw.Pack([kept, 1 - kept]))
    drawn = Dataset.zip((rates, pairs)).filter(
        lambda rates, pair: (
            random_ops.uniform([], seed=seed, dtype=rates.dtype)
            < raw.GatherV2(rates, pair[0], 0)
        )
    )
    chosen = drawn.map(lambda _, pair: pair)
    return sample_from_datasets([pairs, chosen], weights, seed, True, None)


def _mixed(initial, target):
    """How probable it is that an element of each class is accepted, and that it is
    taken as it comes."""
    tiny = np.finfo(initial.dtype.as_numpy_dtype).tiny
    ratio = raw.Cast(target, DstT=initial.dtype) / initial
    most = raw.Max(ratio, 0)
    least = raw.Min(ratio, 0)
    return (ratio - least) / raw.Maximum(most - least, tiny), least


def _estimates(pairs, target):
    """The distribution of classes so far, one an element."""
    classes = int(target.shape[0])

    def estimate(counts, labels):
        ones = raw.OneHot(labels, classes, np.int64(1), np.int64(0))
        counts = counts + raw.Sum(ones, 0)
        seen = raw.Cast(counts, DstT=target.dtype)
        share = seen / raw.Sum(seen, 0)
        rows = raw.ExpandDims(share, 0)
        return counts, raw.Tile(rows, [_ESTIMATED_AT_ONCE, 1])

    labels = pairs.map(lambda label, _: label).batch(_ESTIMATED_AT_ONCE)
    return labels.scan(np.full([classes], _SMOOTHING, np.int64), estimate).unbatch()
