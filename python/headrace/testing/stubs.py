"""tf.compat.v1.test.StubOutForTesting: attributes replaced for the time of a test."""

import inspect


class StubOutForTesting:
    """Replaces attributes and puts the old ones back, at the end of a `with` all."""

    def __init__(self):
        self._plain, self._smart = [], []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.CleanUp()

    def CleanUp(self):  # noqa: N802  (upstream's names, below as well)
        """Puts back all that was replaced."""
        self.SmartUnsetAll()
        self.UnsetAll()

    def SmartSet(self, obj, attr_name, new_attr):  # noqa: N802
        """Replaces an attribute of a module, an object or its class: of that where the
        object has none of its own. AttributeError if there is none."""
        if inspect.ismodule(obj) or (
            not inspect.isclass(obj) and attr_name in getattr(obj, "__dict__", {})
        ):
            owner, old = obj, getattr(obj, attr_name, self)
        else:
            # A class that inherits it gets its own; bases stay as they are.
            owner = obj if inspect.isclass(obj) else type(obj)
            old = inspect.getattr_static(owner, attr_name, self)
        if old is self:
            raise AttributeError("Attribute not found.")
        self._smart.append((owner, attr_name, vars(owner).get(attr_name, self)))
        setattr(owner, attr_name, new_attr)

    def SmartUnsetAll(self):  # noqa: N802
        """Puts back what SmartSet replaced, the last first."""
        for owner, name, old in reversed(self._smart):
            delattr(owner, name) if old is self else setattr(owner, name, old)
        self._smart = []

    def Set(self, parent, child_name, new_child):  # noqa: N802
        """Replaces an attribute; AttributeError if there is none."""
        old = getattr(parent, child_name)
        kept = getattr(parent, "__dict__", {}).get(child_name, old)
        if not isinstance(kept, (staticmethod, classmethod)):
            kept = old
        elif isinstance(kept, staticmethod):
            new_child = staticmethod(new_child)
        self._plain.append((parent, child_name, kept))
        setattr(parent, child_name, new_child)

    def UnsetAll(self):  # noqa: N802
        """Puts back what Set replaced, the last first."""
        for parent, name, old in reversed(self._plain):
            setattr(parent, name, old)
        self._plain = []
