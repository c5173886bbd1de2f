"""Lists, dicts and tuples as objects that checkpoints track.

Assigned to an attribute of a Module or Checkpoint they become one of these:
the same containers in every other respect. What is done to a wrapper is done
to the wrapped original too.
"""

import collections
import inspect

from headrace.framework.trackable import Trackable, is_trackable, node_of

_IGNORED = (
    "\n\nIf you don't need this {} checkpointed, wrap it in a non-trackable object; it "
    "will be subsequently ignored."
)


class NoDependency:
    """Assigned to an attribute: its value is kept there, but not tracked."""

    def __init__(self, value):
        self.value = value


def wrap(value):
    """`value`, or its wrapper when it is a container to be tracked."""
    kind = type(value)
    if kind is list:
        return ListWrapper(value)
    if kind is dict:
        return _DictWrapper(value)
    if kind is collections.OrderedDict:
        return _OrderedDictWrapper(value)
    if isinstance(value, tuple) and not isinstance(value, Trackable):
        return _wrap_tuple(value)
    return value


class ListWrapper(list, Trackable):
    """A tracked list. Elements are found by their places, so only appending keeps it
    fit to be saved."""

    _nest_kind = list

    def __init__(self, wrapped_list=()):
        items = [wrap(x) for x in wrapped_list]
        super().__init__(items)
        self._original = wrapped_list if type(wrapped_list) is list else None
        self._replaced = False
        self._tracks = any(map(is_trackable, items))  # whether it ever held such
        self._mirror()

    def _mirror(self):
        if self._original is not None:
            self._original[:] = self

    def _trackable_items(self):
        return [(str(i), x) for i, x in enumerate(self) if is_trackable(x)]

    def _check_savable(self):
        own, original = list(self), self._original
        if self._replaced:
            raise ValueError(
                f"Unable to save the object {self!r} (a list wrapper constructed to track "
                "trackable TensorFlow objects). A list element was replaced "
                "(__setitem__, __setslice__), deleted (__delitem__, __delslice__), or "
                "moved (sort). In order to support restoration on object creation, "
                "tracking is exclusively for append-only data structures."
                + _IGNORED.format("list")
            )
        if original is None:
            return
        same = len(own) == len(original) and all(a is b for a, b in zip(own, original))
        if not same:
            raise ValueError(
                f"Unable to save the object {self!r} (a list wrapper constructed to track "
                "trackable TensorFlow objects). The wrapped list was modified outside "
                f"the wrapper (its final value was {original}, its value when a "
                f"checkpoint dependency was added was {own}), which breaks restoration "
                "on object creation." + _IGNORED.format("list")
            )

    def append(self, value):
        value = wrap(value)
        super().append(value)
        if self._original is not None:
            self._original.append(value)
        if is_trackable(value):
            self._tracks = True
            if "_self_node" in self.__dict__:
                node_of(self).attach(str(len(self) - 1), node_of(value))

    def extend(self, values):
        for value in list(values):
            self.append(value)

    def __iadd__(self, values):
        self.extend(values)
        return self

    def __imul__(self, n):
        if n <= 0:
            self.clear()
        else:
            self.extend(list(self) * (n - 1))
        return self

    def __repr__(self):
        return f"ListWrapper({list.__repr__(self)})"

    def __reduce__(self):
        return ListWrapper, (list(self),)

    def copy(self):
        return list(self)

    def __copy__(self):
        return ListWrapper(list(self))

    def __hash__(self):
        raise TypeError("unhashable type: 'ListWrapper'")


def _breaks_places(name, args, before, after):
    """Whether restoring by places cannot follow the change of a list: one of its trackable
    elements was replaced or may have moved. Lists of plain values may change freely."""
    held = [x for x in before if is_trackable(x)]
    if name == "__setitem__":
        place = args[0]
        replaced = before[place] if isinstance(place, slice) else [before[place]]
        if any(is_trackable(x) for x in replaced):
            return True
        return bool(held) and len(before) != len(after)
    if name in ("sort", "reverse"):
        return bool(held) and any(a is not b for a, b in zip(before, after))
    return bool(held) or any(is_trackable(x) for x in after)


def _wrapped(name, args):
    """The arguments of a list's method, with elements as the list is to hold them; and
    the elements that it adds."""
    if name == "insert":
        added = [wrap(args[1])]
        return (args[0], *added), added
    if name != "__setitem__":
        return args, []
    place, value = args
    if isinstance(place, slice):
        added = [wrap(v) for v in value]
        return (place, added), added
    added = [wrap(value)]
    return (place, *added), added


def _list_mutator(name):
    method = getattr(list, name)

    def of_plain_values(self, args, kwargs):
        """The change of a list that never held a trackable, at a plain list's cost."""
        original = self._original
        same = original is not None and len(original) == len(self)
        result = method(self, *args, **kwargs)
        if same and name not in ("sort", "reverse"):
            method(original, *args, **kwargs)
        else:
            self._mirror()
        return result

    def mutate(self, *args, **kwargs):
        args, added = _wrapped(name, args)
        self._tracks |= any(map(is_trackable, added))
        if not self._tracks:
            return of_plain_values(self, args, kwargs)
        before = list(self)
        result = method(self, *args, **kwargs)
        self._replaced |= _breaks_places(name, args, before, self)
        self._mirror()
        # Places have changed: later restores go by the new ones.
        node = self.__dict__.get("_self_node")
        if node is not None:
            node.detach_all()
            for place, child in self._trackable_items():
                node.attach(place, node_of(child))
        return result

    mutate.__name__ = name
    return mutate


for _name in "__setitem__ __delitem__ insert pop remove clear sort reverse".split():
    setattr(ListWrapper, _name, _list_mutator(_name))


class _DictMethods(Trackable):
    """What both kinds of dicts add to theirs."""

    _plain = dict

    def __init__(self, *args, **kwargs):
        self._original = None
        self._untracked = False  # changed by a method that tracking does not follow
        self._plain.__init__(self)
        source = args[0] if args else None
        if type(source) is self._plain and not kwargs:
            for key in list(source):
                source[key] = wrap(source[key])
            self._original = source
            self._plain.update(self, source)
            return
        for key, value in self._plain(*args, **kwargs).items():
            self._plain.__setitem__(self, key, wrap(value))

    def _trackable_items(self):
        return [
            (k, v) for k, v in self.items() if isinstance(k, str) and is_trackable(v)
        ]

    def _check_savable(self):
        head = (
            f"Unable to save the object {self} (a dictionary wrapper constructed "
            "automatically on attribute assignment). The wrapped dictionary "
        )
        for key, value in self.items():
            if not isinstance(key, str) and is_trackable(value):
                raise ValueError(
                    head
                    + "contains a non-string key which maps to a trackable object or "
                    "mutable data structure." + _IGNORED.format("dictionary")
                )
        original, known = self._original, self._plain(self)
        same = original is None or (
            len(original) == len(self)
            and all(k in original and original[k] is v for k, v in self.items())
        )
        if self._untracked:
            same, original, known = False, known, None
        if not same:
            raise ValueError(
                head + f"was modified outside the wrapper (its final value was "
                f"{original}, its value when a checkpoint dependency was added was "
                f"{known}), which breaks restoration on object creation."
                + _IGNORED.format("dictionary")
            )

    def __setitem__(self, key, value):
        value = wrap(value)
        self._plain.__setitem__(self, key, value)
        if self._original is not None:
            self._original[key] = value
        if "_self_node" not in self.__dict__ or not isinstance(key, str):
            return
        if is_trackable(value):
            node_of(self).attach(key, node_of(value))
        else:
            node_of(self).detach(key)

    def __delitem__(self, key):
        self._plain.__delitem__(self, key)
        if self._original is not None:
            del self._original[key]
        if "_self_node" in self.__dict__ and isinstance(key, str):
            node_of(self).detach(key)

    def pop(self, key, *default):
        if default and key not in self:
            return default[0]
        value = self[key]
        del self[key]
        self._untracked = True
        return value

    def popitem(self):
        if not self:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self):
        for key in list(self):
            del self[key]
            self._untracked = True

    def update(self, *args, **kwargs):
        for key, value in self._plain(*args, **kwargs).items():
            self[key] = value

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
            self._untracked = True
        return self[key]

    def __ior__(self, other):
        self.update(other)
        return self

    def copy(self):
        return type(self)(self._plain(self))

    __copy__ = copy

    def __reduce__(self):
        return type(self), (self._plain(self),)

    def __reduce_ex__(self, protocol):
        return self.__reduce__()

    def __str__(self):
        return str(self._plain(self))

    def __repr__(self):
        return f"DictWrapper({self._plain(self)!r})"


class _DictWrapper(_DictMethods, dict):
    """A tracked dict; children are called by its string keys."""


class _OrderedDictWrapper(_DictMethods, collections.OrderedDict):
    """A tracked OrderedDict."""

    _plain = collections.OrderedDict


_OrderedDictWrapper.__name__ = _OrderedDictWrapper.__qualname__ = "_DictWrapper"

_tuple_classes = {}  # class of tuples -> its wrapper class


class _TupleMethods(Trackable):
    """What wrappers add to tuples and named tuples."""

    def __str__(self):
        kind = self._plain_class
        fields = getattr(kind, "_fields", None)
        if fields is None:
            return kind.__repr__(self)
        shown = ", ".join(f"{n}={v!r}" for n, v in zip(fields, self))
        return f"{kind.__name__}({shown})"

    def __repr__(self):
        return f"_TupleWrapper({self})"

    def _trackable_items(self):
        """By the names of fields, where it has them, and by places."""
        items = [(n, x) for n, x in zip(getattr(self, "_fields", ()), self)]
        items += [(str(i), x) for i, x in enumerate(self)]
        return [(n, x) for n, x in items if is_trackable(x)]

    def _check_savable(self):
        fields = getattr(self, "_fields", None)
        if fields is None:
            return
        try:
            inspect.signature(self._plain_class.__new__).bind(
                None, **dict(zip(fields, self))
            )
        except TypeError:
            raise ValueError(
                f"Unable to save because the namedtuple {self} is not constructable from "
                "its _fields (i.e. __new__ is overridden). Expected keyword arguments "
                f"{fields}. If you do not need to save this object, consider wrapping it "
                "in a custom object that does not inherit from tuple."
            ) from None

    def __reduce__(self):
        kind = self._plain_class
        if hasattr(kind, "_fields"):
            return kind, tuple(self)
        return kind, (tuple(self),)

    def __reduce_ex__(self, protocol):
        return self.__reduce__()


def _wrap_tuple(value):
    items = [wrap(x) for x in value]
    if not any(is_trackable(x) for x in items):
        return value
    kind = type(value)
    cls = _tuple_classes.get(kind)
    if cls is None:
        cls = type(
            "_TupleWrapper",
            (_TupleMethods, kind),
            {"_plain_class": kind, "_nest_kind": kind},
        )
        _tuple_classes[kind] = cls
    return tuple.__new__(cls, items)
