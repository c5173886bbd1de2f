"""Variables that have no value yet."""


class Undefined:
    """Stands for a variable that is not defined; reading it is an error."""

    __slots__ = ("symbol_name",)

    def __init__(self, symbol_name):
        self.symbol_name = symbol_name

    def read(self):
        """Raises UnboundLocalError, as Python does for such a variable."""
        raise UnboundLocalError(f"'{self.symbol_name}' is used before assignment")

    def __repr__(self):
        return self.symbol_name

    def __getattr__(self, name):
        # An Undefined is handed to Python's own code, too: what is asked of it is
        # asked of a variable without a value. Protocols of Python's and NumPy's
        # find nothing.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self.read()

    def __getitem__(self, key):
        return self.read()


class UndefinedReturnValue:
    """Stands for the value of a function that has not returned yet."""


def ld(value):
    """The value of a variable that is read; UnboundLocalError where it has none."""
    if isinstance(value, Undefined):
        return value.read()
    return value


def ldu(load, name):
    """What `load` reads, a composite name such as a.b, or Undefined."""
    try:
        return load()
    except (UnboundLocalError, AttributeError, KeyError, IndexError, NameError):
        return Undefined(name)
