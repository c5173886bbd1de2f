"""tf.nn: pools whose windows have uneven sizes."""

from headrace._load import _headrace
from headrace.framework.name_scopes import graph_scope
from headrace.framework.settings.random_seed import op_seeds
from headrace.framework.support import signatures


def _ratios(ratio):
    if isinstance(ratio, (int, float)):
        return [1.0, ratio, ratio, 1.0]
    if ratio[0] != 1.0 or ratio[-1] != 1.0:
        raise ValueError(
            "`pooling_ratio` should have first and last elements with value 1.0. "
            f"Received: pooling_ratio={ratio}"
        )
    return ratio


def _pool(op, own_name, what):
    def pool(
        value, pooling_ratio, pseudo_random=False, overlapping=False, seed=0, name=None
    ):
        first, second = (0, 0) if seed == 0 else op_seeds(seed)
        with graph_scope(name, own_name):
            return _headrace.raw_op(op)(
                value=value,
                pooling_ratio=_ratios(pooling_ratio),
                pseudo_random=pseudo_random,
                overlapping=overlapping,
                deterministic=seed != 0,
                seed=first,
                seed2=second,
            )

    doc = f"(the {what} of each window, where rows begin, where columns begin)."
    return signatures.called(pool, own_name, doc)


fractional_max_pool = _pool("FractionalMaxPool", "fractional_max_pool", "largest")
fractional_avg_pool = _pool("FractionalAvgPool", "fractional_avg_pool", "mean")
