"""What a restore has matched: the statuses of tf.train.Checkpoint.restore."""

from headrace._load import _headrace
from headrace.context import sessions
from headrace.framework.settings import logging
from headrace.train import graph_checkpoint
from headrace.train.views import TrackableView

_SHOWN = 10


def log_complaints(lines):
    """Logs values that a restore left over; called when nobody waits for them."""
    logging.warn(
        "Detecting that an object or model or tf.train.Checkpoint is being deleted with "
        "unrestored values. See the following logs for the specific values in question. "
        "To silence these warnings, use `status.expect_partial()`. See "
        "https://www.tensorflow.org/api_docs/python/tf/train/Checkpoint#restore"
        "for details about the status object returned by the restore function."
    )
    for line in lines:
        logging.warn("%s", line)


def of(restoration, root, operations=None):
    """`operations` are what restores a graph's variables; None: all is done."""
    if restoration.name_based():
        return NameBasedSaverStatus(restoration, root, operations)
    return CheckpointLoadStatus(restoration, root, operations)


def _run(session, operations):
    if operations:
        feeds = getattr(operations, "feeds", None)
        sessions.of_checkpoint(session).run(list(operations), feeds)


class _LoadStatus:
    def __init__(self, restoration, root, operations):
        self._restoration = restoration
        self._root = root
        self._operations = operations

    def expect_partial(self):
        """No warnings about values that are never restored."""
        self._restoration.expect_partial()
        return self

    def initialize_or_restore(self, session=None):
        """Gives a graph's variables their values of the checkpoint, or their first
        ones. Eagerly nothing is left to do."""
        if self._operations is not None:
            self.run_restore_ops(session)
            unmatched = self._restoration.unmatched()
            _run(session, graph_checkpoint.initializers(unmatched))

    def run_restore_ops(self, session=None):
        """Gives a graph's variables their values of the checkpoint. Eagerly nothing
        is left to do."""
        _run(session, self._operations)


class CheckpointLoadStatus(_LoadStatus):
    """Of a checkpoint with an object graph."""

    def _fail(self, text):
        error = AssertionError(text)
        _, keys, objects = self._restoration.report()
        for side in (keys, objects):
            for name, nearest in side[:_SHOWN]:
                if nearest:
                    error.add_note(f"{name}: the nearest unmatched name is {nearest}")
        raise error

    def assert_consumed(self):
        """Every value of the checkpoint was restored, every object got its own."""
        self.assert_existing_objects_matched()
        text = self._restoration.check_consumed()
        if text is not None:
            self._fail(text)
        return self

    def assert_existing_objects_matched(self):
        """Every object that has values got them."""
        unmatched = self._restoration.unmatched()
        if unmatched:
            shown = unmatched[:_SHOWN]
            self._fail(
                f"Found {len(unmatched)} Python objects that were not bound to "
                "checkpointed values, likely due to changes in the Python program. "
                f"Showing {len(shown)} of {len(unmatched)} unmatched objects: {shown}"
            )
        return self

    def assert_nontrivial_match(self):
        """Something besides the root object was matched."""
        if self._restoration.check_nontrivial() is None:
            return self
        unmatched = self._restoration.unmatched()
        if len(TrackableView(self._root).descendants()) == 1:
            self._fail(
                f"Nothing to load. No dependencies have been added to {self._root} yet."
            )
        self._fail(
            "Nothing except the root object matched a checkpointed value. Typically "
            "this means that the checkpoint does not match the Python program. The "
            f"following objects have no matching checkpointed value: {unmatched}"
        )

    def summary(self):
        """(matched keys, keys left over, objects without a value); of the latter two
        each with the nearest name of the other side, or ''."""
        return self._restoration.report()


class NameBasedSaverStatus(_LoadStatus):
    """Of a checkpoint without an object graph, whose values go by variable names."""

    def assert_existing_objects_matched(self):
        """Every existing variable got a value."""
        unmatched = self._restoration.unmatched()
        unmatched = [v for v in unmatched if getattr(v, "name", "") != "save_counter:0"]
        if unmatched:
            raise AssertionError(
                "Some objects were not bound to checkpointed values, likely due to "
                f"changes in the Python program: {unmatched}"
            )
        return self

    assert_consumed = assert_existing_objects_matched

    def assert_nontrivial_match(self):
        """Something was matched."""
        if not self._restoration.report()[0]:
            raise AssertionError("No variable has a name that the checkpoint holds.")
        return self


class InitializationOnlyStatus:
    """Of restore(None): nothing was restored."""

    def __init__(self, root):
        self._root = root

    def _fail(self):
        raise AssertionError(
            "No checkpoint specified (save_path=None); nothing is being restored."
        )

    assert_consumed = assert_existing_objects_matched = assert_nontrivial_match = _fail

    def expect_partial(self):
        return self

    def initialize_or_restore(self, session=None):
        """Gives a graph's variables their first values."""
        if not _headrace.is_eager():
            objects = TrackableView(self._root).descendants()
            _run(session, graph_checkpoint.initializers(objects))

    def run_restore_ops(self, session=None):
        self._fail()
