"""Objects that a checkpoint finds: each has a node in a graph of named edges.

The graph itself, keys and restoring are native (src/train). An edge does not
keep its child: Python objects keep each other.
"""

from headrace._load import _headrace

_NODE = "_self_node"
_KEPT = "_self_kept"
_PLAIN = (int, float, str, bytes, bool, type(None))


class Trackable:
    """Base of what checkpoints track besides variables.

    `_serialize_to_tensors` and `_restore_from_tensors`, where a class has them,
    give and take its own values, {name: tensor}. In a plain graph a session takes them,
    but for objects of Python's own (`_restored_at_once`).
    """

    _restored_at_once = False

    def _trackable_children(self, save_type=None, **kwargs):
        """{name: object} of its children."""
        return dict(self._trackable_items())

    def _trackable_items(self):
        """The (name, object) pairs that are its children now."""
        return ()

    def _lookup_dependency(self, name, cached_dependencies=None):
        """The child that a restored checkpoint calls `name`, or None: of what
        `_trackable_children` gave before, where that is at hand."""
        if cached_dependencies is None:
            cached_dependencies = self._trackable_children()
        return cached_dependencies.get(name)

    def _restore_from_tensors(self, restored_tensors):
        raise NotImplementedError


_LOOKUP = Trackable._lookup_dependency


def is_trackable(value):
    """True for what a checkpoint can save: trackable objects and variables."""
    return isinstance(value, (Trackable, _headrace.VariableBase)) or hasattr(
        type(value), "_reference_node"
    )


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


def looked_up(value, name):
    """Called natively for classes with a _lookup_dependency of their own: the node of
    the child that a restored checkpoint calls `name`, or None."""
    found = value._lookup_dependency(name, value._trackable_children())
    return None if found is None else node_of(found)


def _variable_node(variable):
    parent = getattr(variable, "_parent", None)
    if parent is not None:  # what an assignment returned
        return node_of(parent)
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
    )
    object.__setattr__(value, _NODE, node)
    for name, child in value._trackable_items():
        node.attach(name, node_of(child))
    return node


class _Kept:
    """Children whose attributes have been given values that are not tracked: as
    upstream, they stay children until they are replaced or deleted."""

    __slots__ = ("children",)

    def __init__(self):
        self.children = {}


class AutoTrackable(Trackable):
    """Tracks what is assigned to its attributes; lists and dicts are wrapped."""

    def __setattr__(self, name, value):
        if isinstance(value, _PLAIN) or name == _NODE:
            self._keep_child(name)
            super().__setattr__(name, value)
            return
        ignored = isinstance(value, data_structures.NoDependency)
        value = value.value if ignored else data_structures.wrap(value)
        if is_trackable(value) and not ignored:
            self._drop_kept(name)
            super().__setattr__(name, value)
            node_of(self).attach(name, node_of(value))
        else:
            self._keep_child(name)
            super().__setattr__(name, value)

    def _keep_child(self, name):
        child = self.__dict__.get(name)
        if child is not None and is_trackable(child):
            kept = self.__dict__.setdefault(_KEPT, _Kept())
            kept.children[name] = child

    def _drop_kept(self, name):
        if _KEPT in self.__dict__:
            self.__dict__[_KEPT].children.pop(name, None)

    def __delattr__(self, name):
        super().__delattr__(name)
        self._drop_kept(name)
        if _NODE in self.__dict__:
            self.__dict__[_NODE].detach(name)

    def _trackable_items(self):
        own = [(n, v) for n, v in self.__dict__.items() if is_trackable(v)]
        kept = self.__dict__.get(_KEPT)
        return own + (list(kept.children.items()) if kept else [])


# Last, for its classes are trackable.
from headrace.framework import data_structures  # noqa: E402
