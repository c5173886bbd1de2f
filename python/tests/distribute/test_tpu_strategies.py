"""Programs ask whether they run on TPUs: by a try, or by isinstance of their strategy."""

import headrace as tf
import pytest

_CLASSES = (
    tf.distribute.TPUStrategy,
    tf.distribute.experimental.TPUStrategy,
    tf.compat.v1.distribute.experimental.TPUStrategy,
)


def test_no_strategy_is_of_tpus():
    for strategy in (
        tf.distribute.get_strategy(),
        tf.distribute.OneDeviceStrategy("/cpu:0"),
        tf.distribute.MirroredStrategy(["/cpu:0"]),
    ):
        assert not any(isinstance(strategy, c) for c in _CLASSES)
    bases = (tf.distribute.Strategy,) * 2 + (tf.compat.v1.distribute.Strategy,)
    assert all(map(issubclass, _CLASSES, bases))


@pytest.mark.parametrize("strategy_class", _CLASSES)
def test_without_a_name_it_is_tensorflows_error(strategy_class):
    with pytest.raises(ValueError, match="^Please provide a TPU Name to connect to"):
        strategy_class()


def test_with_a_resolver_it_says_that_there_are_none():
    spec = tf.train.ClusterSpec({"worker": ["localhost:1"]})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec)
    for strategy_class in _CLASSES:
        with pytest.raises(tf.errors.UnimplementedError, match="there are no TPUs"):
            strategy_class(resolver)


def test_programs_that_try_a_tpu_first_go_on():
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        strategy = tf.distribute.TPUStrategy(resolver)
    except ValueError:
        strategy = tf.distribute.get_strategy()
    assert strategy.num_replicas_in_sync == 1
