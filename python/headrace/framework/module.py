"""tf.Module: an object that finds the variables and modules below it."""

import functools
import re

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework import nest
from headrace.framework.name_scopes import name_scope
from headrace.framework.trackable import AutoTrackable

_VALID = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")


def camel_to_snake(value):
    """MyLayer -> my_layer."""
    return re.sub(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))", r"_\1", value).lower()


class Module(AutoTrackable):
    """Groups variables, other modules and functions under attributes."""

    _TF_MODULE_IGNORED_PROPERTIES = frozenset(
        (
            "_self_node",
            "_self_kept",
            "_self_found",
            "_self_unconditional_checkpoint_dependencies",
        )
    )

    def __init__(self, name=None):
        if name is None:
            name = camel_to_snake(type(self).__name__)
        elif not _VALID.match(name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python "
                "identifiers (e.g. a valid class name)."
            )
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope
            self._name_scope = name_scope(scope)

    name = read_only(
        "_name",
        "The name given to the constructor, else the class's name in snake_case.",
    )
    name_scope = read_only(
        "_name_scope", "The tf.name_scope that with_name_scope() puts methods under."
    )

    @property
    def variables(self):
        """A tuple of the variables of this module and of the modules under it.

        Attributes are taken in the order of their names, those of submodules after the
        module's own; lists, tuples and dicts are looked into. Each variable comes once.
        """
        return tuple(self._flatten(predicate=_is_variable, expand_composites=True))

    @property
    def trainable_variables(self):
        """A tuple of those of `variables` that are trainable, in the same order."""
        found = self._flatten(predicate=lambda x: _is_variable(x) and x.trainable)
        return tuple(found)

    @property
    def non_trainable_variables(self):
        """A tuple of those of `variables` that are not trainable, in the same order."""
        found = self._flatten(predicate=lambda x: _is_variable(x) and not x.trainable)
        return tuple(found)

    @property
    def submodules(self):
        """A tuple of all modules under this one, at any depth, without itself."""
        return tuple(self._flatten(predicate=lambda x: isinstance(x, Module)))

    def _flatten(
        self,
        recursive=True,
        predicate=None,
        attribute_traversal_key=None,
        with_path=False,
        expand_composites=False,
    ):
        predicate = predicate or (lambda _: True)
        how = (recursive, predicate, attribute_traversal_key, with_path)
        return _walk(self, (), {id(self)}, *how)

    def _held_beside(self):
        """What it holds that is no attribute, by the names that paths have."""
        return {}

    @classmethod
    def with_name_scope(cls, method):
        """Wraps a method so that it runs under the module's name scope."""

        @functools.wraps(method)
        def wrapped(self, *args, **kwargs):
            with self.name_scope:
                return method(self, *args, **kwargs)

        return wrapped


def _is_variable(x):
    return isinstance(x, _headrace.VariableBase)


def _with_parts(leaves):
    """Sharded variables as their parts."""
    for path, leaf in leaves:
        if getattr(leaf, "is_sharded_variable", False):
            yield from (((*path, i), part) for i, part in enumerate(leaf.variables))
        else:
            yield path, leaf


def _walk(module, path, seen, recursive, predicate, key, with_path):
    submodules = []
    ignored = module._TF_MODULE_IGNORED_PROPERTIES
    beside = module._held_beside()
    attributes = {**vars(module), **beside} if beside else vars(module)
    for name in sorted(attributes, key=key):
        if name in ignored:
            continue
        value = attributes[name]
        try:
            leaves = nest.flatten_with_paths(value)
        except TypeError:
            leaves = [((), value)]
        for leaf_path, leaf in _with_parts(leaves):
            full = path + (name, *leaf_path)
            if id(leaf) in seen:
                continue
            if isinstance(leaf, Module) or _is_variable(leaf):
                matched = predicate(leaf)
            else:
                try:
                    matched = predicate(leaf)
                except Exception:
                    matched = False
            if matched:
                seen.add(id(leaf))
                yield (full, leaf) if with_path else leaf
            if recursive and isinstance(leaf, Module):
                submodules.append((full, leaf))
    for full, sub in submodules:
        if ("sub", id(sub)) in seen:
            continue
        seen.add(("sub", id(sub)))
        yield from _walk(sub, full, seen, recursive, predicate, key, with_path)
