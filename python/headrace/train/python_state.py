"""tf.train.experimental.PythonState."""

import abc

import numpy as np

from headrace.context import stack
from headrace.framework import conversion, dtypes
from headrace.framework.trackable import Trackable
from headrace.function.py_functions import numpy_function
from headrace.ops import array_ops


class PythonState(Trackable, metaclass=abc.ABCMeta):
    """Puts a string of Python's making into checkpoints."""

    @abc.abstractmethod
    def serialize(self):
        """The state as text or bytes."""

    @abc.abstractmethod
    def deserialize(self, string_value):
        """Takes what serialize gave, as bytes."""

    def _serialize_to_tensors(self):
        if stack.current() is None:
            return {"py_state": conversion.constant(self.serialize(), dtype="string")}
        # The state when a session saves it.
        state = numpy_function(self._bytes, [], dtypes.string)
        return {"py_state": array_ops.reshape(state, [])}

    def _bytes(self):
        return np.array(self.serialize(), dtype=object)  # text of NumPy ends at zeros

    _restored_at_once = True

    def _restore_from_tensors(self, restored_tensors):
        self.deserialize(restored_tensors["py_state"].numpy())
