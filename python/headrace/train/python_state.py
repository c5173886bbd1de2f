"""tf.train.experimental.PythonState."""

import abc

from headrace.framework.trackable import Trackable


class PythonState(Trackable, metaclass=abc.ABCMeta):
    """Puts a string of Python's making into checkpoints."""

    @abc.abstractmethod
    def serialize(self):
        """The state as text or bytes."""

    @abc.abstractmethod
    def deserialize(self, string_value):
        """Takes what serialize gave, as bytes."""

    def _serialize_to_tensors(self):
        from headrace.framework import conversion

        return {"py_state": conversion.constant(self.serialize(), dtype="string")}

    def _restore_from_tensors(self, restored_tensors):
        self.deserialize(restored_tensors["py_state"].numpy())
