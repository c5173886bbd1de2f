"""Headrace: TensorFlow's programming model on a small, fast engine.

Public names come from api_names.txt, a row a name: `tf.math.add` is row
`math.add ops.math_ops:add`. A name's module is imported when it is first used.

So is the engine, with the first of all names: `headrace.framework` loads it. The client
of model servers, `headrace.serving`, needs none.
"""

import os
import sys
from types import ModuleType as _Module

from headrace import _moved, _names
from headrace.context import locks  # noqa: F401  (what forks wait for)

__version__ = "2.21.0"

_root = _names.read(os.path.join(os.path.dirname(__file__), "api_names.txt"))


class _Package(_Module):
    """The package as a namespace: submodules do not shadow public names."""

    def __getattr__(self, name):
        if name == "serving":
            return _names.module(name)
        if name[:1] != "_" or name == "_load":
            _names.load_engine()
            if name in self.__dict__:
                return self.__dict__[name]
        return _names.resolve(self, _root, name)

    def __setattr__(self, name, value):
        if isinstance(value, _Module) and name in _root:
            if not isinstance(value, _names.Namespace):
                return
        super().__setattr__(name, value)

    def __dir__(self):
        _names.load_engine()
        # What programs put here, too, but for the modules that imports do.
        put = (n for n, v in vars(self).items() if not isinstance(v, _Module))
        return sorted({*_root, *_names.without_private(put)})

    __all__ = property(lambda self: _names.without_private(dir(self)))


sys.modules[__name__].__class__ = _Package
_names.open_namespaces(__name__, _root)
sys.meta_path += [_moved.Finder, _names.LaterNames]
