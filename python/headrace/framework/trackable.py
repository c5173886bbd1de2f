"""Objects that a checkpoint finds: each has a node in a graph of named edges.

The graph itself, keys and restoring are native (src/train). An edge does not
keep its child: Python objects keep each other.
"""

import contextlib
import threading
import weakref

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import dtypes

_NODE = "_self_node"
_KEPT = "_self_kept"
_FOUND = "_self_found"
_PLAIN = (int, float, str, bytes, bool, type(None))


def is_for_checkpoint(save_type):
    """Whether children are asked for a checkpoint. All else, as upstream has it, is for a
    SavedModel."""
    return getattr(save_type, "value", save_type) == "checkpoint"


class Trackable:
    """Base of what checkpoints track besides variables.

    `_serialize_to_tensors` and `_restore_from_tensors`, where a class has them,
    give and take its own values, {name: tensor}. In a plain graph a session takes them,
    but for objects of Python's own (`_restored_at_once`).
    """

    _restored_at_once = False

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        """{name: object} of its children. Classes may give others: they are asked
        whenever a checkpoint is written or read."""
        del save_type, kwargs
        owners = ((n, owner_of(node)) for n, node in node_of(self).attached())
        return {name: owner for name, owner in owners if owner is not None}

    def _deserialization_dependencies(self, children):
        """{name: object} of those of its children that have to be made before it is,
        when a SavedModel is loaded."""
        del children
        return {}

    def _trackable_items(self):
        """The (name, object) pairs that are its children when its node is made."""
        kept = _kept_of(self)
        return list(kept.children.items()) if kept else []

    def _lookup_dependency(self, name, cached_dependencies=None):
        """The child that a restored checkpoint calls `name`, or None: of what
        `_trackable_children` gave before, where that is at hand."""
        if cached_dependencies is None:
            cached_dependencies = self._trackable_children()
        return cached_dependencies.get(name)

    def _restore_from_tensors(self, restored_tensors):
        raise NotImplementedError

    def _maybe_initialize_trackable(self):
        """Makes the node that checkpoints know the object by."""
        node_of(self)

    def _no_dependency(self, value):
        """`value` such that an attribute it is assigned to is not tracked."""
        return value

    def _track_trackable(self, trackable, name, overwrite=False):
        """Makes `trackable` the child of that name, kept by this object; returns it.
        What a restored checkpoint has for the child arrives. ValueError where another
        has the name, unless overwrite."""
        if not is_trackable(trackable):
            raise TypeError(
                "Trackable._track_trackable() can only be used to track objects of type "
                f"Trackable. Got type {type(trackable)}."
            )
        other = self._lookup_dependency(name)
        if not overwrite and other is not None and other is not trackable:
            raise ValueError(
                f"Called Trackable._track_trackable() with name='{name}', but a Trackable "
                "with this name is already declared as a dependency. Names must be unique "
                "(or overwrite=True)."
            )
        _kept_by(self).children[name] = trackable
        node_of(self).attach(name, node_of(trackable))
        return trackable

    def _handle_deferred_dependencies(self, name, trackable):
        """Gives `trackable` what a restored checkpoint keeps for the child `name`."""
        node_of(self).take_waiting(name, node_of(trackable))

    def _add_variable_with_custom_getter(
        self,
        name,
        shape=None,
        dtype=None,
        initializer=None,
        getter=None,
        overwrite=False,
        **kwargs_for_getter,
    ):
        """getter(name, shape, dtype, initializer, ...)'s variable, float32 by default,
        as the child `name`, with the value that a restored checkpoint has for it."""
        if not overwrite and self._lookup_dependency(name) is not None:
            raise ValueError(
                f"A variable named '{name}' already exists in this Trackable, but "
                "Trackable._add_variable_with_custom_getter called to create another "
                "with that name. Variable names must be unique within a Trackable object."
            )
        made = getter(
            name=name,
            shape=shape,
            dtype=dtypes.float32 if dtype is None else dtype,
            initializer=initializer,
            **kwargs_for_getter,
        )
        if overwrite and not is_trackable(made):
            return made
        return self._track_trackable(made, name, overwrite)


_LOOKUP = Trackable._lookup_dependency
_CHILDREN = Trackable._trackable_children


def is_trackable(value):
    """True for what a checkpoint can save: trackable objects and variables."""
    return isinstance(value, Trackable) or hasattr(type(value), "_reference_node")


def node_of(value):
    """The node of a trackable object, made when first asked for."""
    node = getattr(value, _NODE, None)
    if isinstance(value, _headrace.VariableBase):
        return node or _variable_node(value)
    if hasattr(type(value), "_reference_node"):
        return node or value._reference_node()
    # A shallow copy brings the node of its original.
    if node is None or owner_of(node) is not value:
        node = _new_node(value)
    return node


class _TupleOwner:
    """Stands for a tuple, which cannot be referred to weakly, before its node; the tuple
    keeps it."""

    __slots__ = ("__weakref__", "value")

    def __init__(self, value):
        self.value = value

    def _check_savable(self):
        self.value._check_savable()


def owner_of(node):
    """The object of a node, None where it is gone."""
    owner = node.owner()
    return owner.value if isinstance(owner, _TupleOwner) else owner


def found_children(value):
    """Called natively for classes with a _trackable_children of their own: the (name,
    node) pairs of those children, which stay until it is asked again."""
    children = _children_of(value)
    object.__setattr__(value, _FOUND, _Found(children))
    return [(name, node_of(child)) for name, child in children.items()]


def looked_up(value, names):
    """Called natively for classes with a _trackable_children or _lookup_dependency of
    their own: the nodes of the children that a restored checkpoint calls so, or None."""
    children = _children_of(value)
    found = [value._lookup_dependency(name, children) for name in names]
    object.__setattr__(value, _FOUND, _Found(found))
    return [None if child is None else node_of(child) for child in found]


_given = threading.local()


@contextlib.contextmanager
def saved_as(children, session=None, variables=()):
    """Within, in this thread, objects whose classes have a `_trackable_children` of their
    own have `children`, {id of the object: {name: child}}: a SavedModel holds the values
    of what it holds, which need not be what a checkpoint would. What a graph holds, its
    `variables` foremost, has the value that `session` has."""
    try:
        _given.children, _given.session = children, session
        if variables:
            _given.values = dict(zip(map(id, variables), of_session(variables)))
        yield
    finally:
        _given.__dict__.clear()


def of_session(tensors):
    """A graph's tensors, or variables, as eager tensors of the values that they have in
    the session that is being saved; None where none is."""
    session = getattr(_given, "session", None)
    if session is None:
        return None
    return [_headrace.make_tensor(value) for value in session.run(list(tensors))]


def value_of_session(variable):
    """Called natively: a graph's variable in the session that is being saved, or None."""
    return getattr(_given, "values", {}).get(id(variable))


def _children_of(value):
    given = getattr(_given, "children", {}).get(id(value))
    if given is not None:
        return given
    children = value._trackable_children(save_type="checkpoint")
    for name, child in children.items():
        if not is_trackable(child):
            raise TypeError(
                f"{type(value).__name__}._trackable_children: {name!r} is no trackable "
                f"object, got {child!r}"
            )
    return children


class _Found:
    """Keeps what an object found for a checkpoint. Copies of it are empty."""

    __slots__ = ("children",)

    def __init__(self, children=()):
        self.children = children

    def __reduce__(self):
        return _Found, ()


def _variable_node(variable):
    parent = getattr(variable, "_parent", None)
    if parent is not None:  # what an assignment returned
        return node_of(parent)
    # It stands for another, or says itself what checkpoints hold.
    if not variable._is_set_up or getattr(variable, "_serializes_itself", False):
        return _new_node(variable)
    node = _headrace.new_variable_node(variable, variable.name.partition(":")[0])
    setattr(variable, _NODE, node)
    return node


def _new_node(value):
    cls, owner = type(value), value
    if issubclass(cls, tuple):
        owner = _TupleOwner(value)
        object.__setattr__(value, "_self_owner", owner)
    node = _headrace.new_node(
        owner,
        hasattr(cls, "_serialize_to_tensors"),
        hasattr(cls, "_check_savable"),
        getattr(cls, "_lookup_dependency", _LOOKUP) is not _LOOKUP,
        getattr(cls, "_trackable_children", _CHILDREN) is not _CHILDREN,
    )
    object.__setattr__(value, _NODE, node)
    for name, child in value._trackable_items():
        node.attach(name, node_of(child))
    return node


@contextlib.contextmanager
def other_node(value, parent, name, children):
    """Within, `value`, the child `name` of `parent`, has a node of these children alone,
    {name: object}, and no slots: for files of another layout."""
    usual = node_of(value)
    try:
        object.__setattr__(value, _NODE, None)
        node = _new_node(value)
        for other, _ in node.children():
            node.detach(other)
        for child, owner in children.items():
            node.attach(child, node_of(owner))
        node_of(parent).attach(name, node)
        yield
    finally:
        object.__setattr__(value, _NODE, usual)
        node_of(parent).attach(name, usual)


class _Kept:
    """Children whose attributes have been given values that are not tracked: as
    upstream, they stay children until they are replaced or deleted. So do those that
    are no attributes (_track_trackable). `untracked` are names of attributes that are
    no children (NoDependency)."""

    __slots__ = ("children", "untracked")

    def __init__(self):
        self.children = {}
        self.untracked = set()


def _kept_of(value):
    """What an object keeps so, or None. Past a __getattribute__ of its class, which may
    make what it is asked for."""
    try:
        return object.__getattribute__(value, _KEPT)
    except AttributeError:
        return None


def _kept_by(value):
    kept = _kept_of(value)
    if kept is None:
        object.__setattr__(value, _KEPT, kept := _Kept())
    return kept


# Types, exactly these, of which no value is tracked, whatever it is assigned to.
_NEVER_TRACKED = frozenset(
    (*_PLAIN, _headrace.EagerTensor, _headrace.SymbolicTensor, dtypes.DType)
)


class AutoTrackable(Trackable):
    """Tracks what is assigned to its attributes; lists and dicts are wrapped."""

    def __setattr__(self, name, value):
        if type(value) in _NEVER_TRACKED and self.__dict__.get(name) is None:
            super().__setattr__(name, value)  # there is no child to be kept either
            return
        if isinstance(value, _PLAIN) or name == _NODE:
            self._keep_child(name)
            super().__setattr__(name, value)
            return
        ignored = isinstance(value, data_structures.NoDependency)
        if ignored:
            value = value.value
        elif self._setattr_tracking:
            value = data_structures.wrap(value)
        else:
            ignored = True
        if is_trackable(value) and not ignored:
            self._drop_kept(name)
            super().__setattr__(name, value)
            if _NODE in self.__dict__ or not self._is_found_late(name, value):
                node_of(self).attach(name, node_of(value))
        else:
            self._keep_child(name)
            super().__setattr__(name, value)
            if is_trackable(value):
                _kept_by(self).untracked.add(name)

    def _begin_with(self, **values):
        """Sets attributes of an object that has none of these names yet, as assignments
        do: without a node they are found when it is made."""
        late = self._node_comes_late and self._setattr_tracking
        if not late or _NODE in self.__dict__:
            for name, value in values.items():
                setattr(self, name, value)
            return
        for name, value in values.items():
            self.__dict__[name] = data_structures.wrap(value)

    # Whether an object gets its node, an attribute more, when that is asked for, and not
    # with its first child: of classes whose objects are many and seldom saved.
    _node_comes_late = False

    def _is_found_late(self, name, value):
        """Whether the node of this object will have the child when it is made."""
        return self._node_comes_late and self.__dict__.get(name) is value

    def _keep_child(self, name):
        child = self.__dict__.get(name)
        if child is not None and is_trackable(child):
            kept = _kept_by(self)
            if name not in kept.untracked:
                kept.children[name] = child

    def _drop_kept(self, name):
        if _KEPT in self.__dict__:
            kept = _kept_of(self)
            kept.children.pop(name, None)
            kept.untracked.discard(name)

    def __delattr__(self, name):
        super().__delattr__(name)
        self._drop_kept(name)
        if _NODE in self.__dict__:
            self.__dict__[_NODE].detach(name)

    def _trackable_items(self):
        kept = _kept_of(self)
        untracked = kept.untracked if kept else ()
        own = [
            (n, v)
            for n, v in self.__dict__.items()
            if n not in untracked and is_trackable(v)
        ]
        return own + super()._trackable_items()

    @property
    def _setattr_tracking(self):
        """Whether what is assigned to attributes is tracked: `_self_setattr_tracking`,
        True where nobody set that."""
        return self.__dict__.get("_self_setattr_tracking", True)

    @_setattr_tracking.setter
    def _setattr_tracking(self, value):
        self._self_setattr_tracking = value

    def _no_dependency(self, value):
        return data_structures.NoDependency(value)


_holders = weakref.WeakValueDictionary()  # handle id -> TrackableResource


def holder_of(handle):
    """The object that said that it holds that resource; None where none did."""
    return _holders.get(handle._id)


class TrackableResource(Trackable):
    """An object that holds a resource of the engine (a table, say).

    A class of the user's defines `_create_resource`, which gives the handle, and may
    define `_initialize` and `_destroy_resource`. `resource_handle` is made when it is
    first asked for.
    """

    _own_handle = True  # False where it is that of an object which this one holds

    def __init__(self, device=""):
        self._resource_device = device
        self._made_handle = None

    def _create_resource(self):
        raise NotImplementedError("TrackableResource._create_resource not implemented.")

    def _initialize(self):
        """Fills the resource; by default there is nothing to do."""

    def _destroy_resource(self):
        """Frees the resource; it ends with its last handle in any case."""

    def _hold(self, handle):
        """Tells holder_of() of a handle that lies in this process."""
        if isinstance(handle, _headrace.EagerTensor):
            _holders[handle._id] = self

    @property
    def resource_handle(self):
        """The handle: a tensor."""
        if self._made_handle is None:
            with stack.init_scope():
                self._made_handle = self._create_resource()
        return self._made_handle


class TrackableConstant(Trackable):
    """A tensor that functions captured, or that is a child."""

    def __init__(self, value):
        self.value = value

    def numpy(self):
        """The value as an array."""
        return self.value.numpy()


def as_trackable(value):
    """What a SavedModel holds for a child: containers are wrapped, tensors are constants.

    ValueError for what cannot be tracked.
    """
    if isinstance(value, _headrace.EagerTensor):
        return TrackableConstant(value)
    wrapped = data_structures.wrap(value)
    if not is_trackable(wrapped):
        raise ValueError(f"Cannot convert {value} to Trackable.")
    return wrapped


# Last, for its classes are trackable.
from headrace.framework import data_structures  # noqa: E402
