"""The objects of loaded models."""

import collections.abc

from headrace._load import _headrace
from headrace.framework import conversion, data_structures, variables
from headrace.framework.trackable import (
    AutoTrackable,
    Trackable,
    TrackableResource,
    node_of,
)


class _UserObject(AutoTrackable):
    """An object of a class that was not saved: its attributes are there."""


class _CallableObject(_UserObject):
    """One that could be called."""

    def __call__(self, *args, **kwargs):
        return self.__dict__["__call__"](*args, **kwargs)


class UnreadableFunction(Trackable):
    """A function that takes or gives values which there is no form for here."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(
            f"SavedModel: {self._name} takes or gives values of a type that is not "
            "supported"
        )


class SignatureMap(collections.abc.Mapping, Trackable):
    """The signatures of a model: concrete functions by name."""

    def __init__(self, functions=()):
        self._functions = dict(functions)

    def __getitem__(self, key):
        return self._functions[key]

    def __iter__(self):
        return iter(self._functions)

    def __len__(self):
        return len(self._functions)

    def __repr__(self):
        return f"_SignatureMap({self._functions!r})"


SignatureMap.__name__ = "_SignatureMap"


class RestoredResource(TrackableResource, AutoTrackable):
    """A resource of a loaded model, which its functions made."""

    def __init__(self, handle):
        super().__init__()
        self._made_handle = handle


class SavedResource(RestoredResource):
    """One whose values are saved: {name: (function that saves, function that restores)}
    are `_saveables`."""

    def __init__(self, handle):
        super().__init__(handle)
        self._saveables = data_structures.NoDependency({})
        self._names = data_structures.NoDependency({})

    @property
    def _checkpoint_attribute(self):
        return next(iter(self._saveables), "")

    def find_names(self, saveables):
        """Keeps what the values are called, which a graph's nodes would not tell."""
        for name, (save, _) in saveables.items():
            rows = save.of_tensors([_headrace.make_tensor(name)])
            self._names[name] = [n.numpy().decode() for n in rows[::3]]

    def _serialize_to_tensors(self):
        found = {}
        self._find_missing_names()
        for name, (save, _) in self._saveables.items():
            rows = save.of_tensors([conversion.constant(name)])
            found.update(zip(self._names[name], rows[2::3]))
        return found

    def _restore_from_tensors(self, restored_tensors):
        self._find_missing_names()
        for name, (_, restore) in self._saveables.items():
            restore.of_tensors([restored_tensors[n] for n in self._names[name]])

    def _find_missing_names(self):
        if len(self._names) < len(self._saveables):
            self.find_names(self._saveables)


def variable(handle, name, dtype, shape, trainable, synchronization, aggregation):
    """The tf.Variable of a handle that was made natively."""
    made = variables.ResourceVariable.__new__(variables.ResourceVariable)
    made._constraint = None
    made._synchronization = variables.VariableSynchronization(synchronization)
    made._aggregation = variables.VariableAggregation(aggregation)
    made._shared_name = name or "Variable"
    made._set_up(handle, dtype, shape, trainable)
    variables._by_handle[handle._id] = made
    return made


def user_object(is_callable):
    """An object of a class that is not there."""
    return _CallableObject() if is_callable else _UserObject()


def attach_slots(optimizer, slots):
    """`slots`: (variable, name of the slot, its variable)."""
    for of, name, slot in slots:
        node_of(optimizer).attach_slot(node_of(of), name, node_of(slot))
