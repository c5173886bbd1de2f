"""What is known while layers call each other, and what a layer's call takes."""

import inspect
import threading

from headrace._load import _headrace
from headrace.context import strategies


class _Context(threading.local):
    """Of one thread: the layers being called, outermost first."""

    def __init__(self):
        self.names = []
        self.training = None
        self.read = None
        self.describes = False  # whether the call is of a model that is being described

    def reads(self, dtype):
        """Says what variables that are cast are read in from now on, None for what they
        are kept in; returns what it was."""
        before, self.read = self.read, dtype
        _headrace.set_read_dtype(dtype)
        return before


context = strategies.carry(_Context())
_specs = {}


class CallSpec:
    """The parameters of a layer's `call`."""

    def __init__(self, call):
        parameters = list(inspect.signature(call).parameters.values())
        kinds = inspect.Parameter
        self.names = [
            p.name
            for p in parameters
            if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        ]
        by_name = {p.name: p for p in parameters}
        catch_all = any(p.kind == kinds.VAR_KEYWORD for p in parameters)
        self.first = self.names[0] if self.names else None
        self.has_training = "training" in by_name or catch_all
        self.catches_training = catch_all and "training" not in by_name
        self.has_mask = "mask" in by_name or catch_all
        self.default_training = None
        if "training" in by_name:
            default = by_name["training"].default
            self.default_training = None if default is kinds.empty else default
        self.accepted = set(by_name)
        self.catch_all = catch_all

    def given(self, name, args, kwargs):
        """(whether it was passed, the value)."""
        if name in kwargs:
            return True, kwargs[name]
        if name in self.names:
            at = self.names.index(name)
            if at < len(args):
                return True, args[at]
        return False, None


def spec_of(layer):
    """The CallSpec of a layer, made once a class."""
    function = getattr(type(layer).call, "__func__", type(layer).call)
    spec = _specs.get(function)
    if spec is None or "call" in layer.__dict__:
        spec = CallSpec(layer.call)
        if "call" not in layer.__dict__:
            _specs[function] = spec
    return spec
