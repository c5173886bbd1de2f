"""tf.data.experimental.make_saveable_from_iterator: iterators in a Saver's files."""

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.data.iterator import Iterator
from headrace.framework import dtypes
from headrace.train.saver_graph import Saveable

_POLICIES = {None: 0, "warn": 0, "ignore": 1, "fail": 2}


class _IteratorSaveable(Saveable):
    """An iterator's place under its name in checkpoints."""

    def __init__(self, resource, policy):
        super().__init__(f"{resource.name}_STATE", resource)
        self._policy = policy

    @property
    def dtype(self):
        return dtypes.variant

    device = read_only("variable.device", "Where the iterator is.")

    def to_save(self):
        return raw.SerializeIterator(self.variable, external_state_policy=self._policy)

    def assign(self, value, reshape):
        raw.DeserializeIterator(self.variable, value)
        return stack.current()._last_operation()


def make_saveable_from_iterator(iterator, external_state_policy=None):
    """What tf.compat.v1.train.Saver saves and restores an iterator's place by.

    To be put into the collection SAVEABLE_OBJECTS before the Saver is made. The
    iterator has to be initialized before it is restored.

    Args:
      iterator: of tf.compat.v1.data.make_initializable_iterator and the like.
      external_state_policy: what to do about state outside of the dataset, such as that
        of random ops: "warn" (the default), "ignore" or "fail".

    Raises:
      TypeError: `iterator` is no iterator of a graph.
      ValueError: another policy.
    """
    if external_state_policy not in _POLICIES:
        raise ValueError(
            f"Got external_state_policy={external_state_policy!r}, but it must be "
            "one of 'warn', 'ignore' and 'fail'."
        )
    resource = getattr(iterator, "_resource", None)
    graph = isinstance(resource, _headrace.SymbolicTensor)
    if not isinstance(iterator, Iterator) or not graph:
        raise TypeError(
            "make_saveable_from_iterator wants an iterator of a graph, got "
            f"{iterator!r}. tf.train.Checkpoint saves those of eager programs."
        )
    return _IteratorSaveable(resource, _POLICIES[external_state_policy])
