"""Dataset.rejection_resample."""

import numpy as np

from headrace.data.dataset import Dataset
from headrace.data.functions import raw
from headrace.framework import conversion, dtypes

_SMOOTHING = 10  # examples counted of each class before the first one comes


def rejection_resample(source, class_func, target_dist, initial_dist, seed):
    """(class, element) pairs whose classes are distributed as `target_dist`."""
    target = conversion.convert_to_tensor(target_dist)

    def classified(*args):
        value = args[0] if len(args) == 1 else args
        c = conversion.convert_to_tensor(class_func(*args))
        return raw("Cast")(x=c, DstT=dtypes.int64), value

    pairs = source.map(classified)
    if initial_dist is not None:
        initial = conversion.convert_to_tensor(initial_dist)
        ratio = _acceptance(initial, target)
        tagged = pairs.map(lambda c, x: (_gather(ratio, c), (c, x)))
    else:
        classes = int(target.shape[0])
        counts = np.full([classes], _SMOOTHING, np.int64)

        def estimate(state, pair):
            c, _ = pair
            one = raw("OneHot")(
                indices=c,
                depth=classes,
                on_value=np.int64(1),
                off_value=np.int64(0),
            )
            state = state + one
            seen = raw("Cast")(x=state, DstT=target.dtype)
            ratio = _acceptance(seen / raw("Sum")(input=seen, axis=0), target)
            return state, (_gather(ratio, c), pair)

        tagged = pairs.scan(counts, estimate)
    coins = Dataset.random(seed)
    drawn = Dataset.zip((tagged, coins)).filter(
        lambda tagged, coin: (
            raw("Cast")(x=coin, DstT=tagged[0].dtype) / float(2**32) < tagged[0]
        )
    )
    return drawn.map(lambda tagged, _: tagged[1])


def _acceptance(initial, target):
    """How probable it is that an element of each class is taken."""
    tiny = np.finfo(initial.dtype.as_numpy_dtype).tiny
    ratio = raw("Cast")(x=target, DstT=initial.dtype) / (initial + tiny)
    return ratio / raw("Max")(input=ratio, axis=0)


def _gather(values, index):
    return raw("GatherV2")(params=values, indices=index, axis=0)
