"""Classes around one function each: losses, and means of what a function gives."""

import inspect


def function_class(base, name, fn, parameters, module, doc, **members):
    """A subclass of `base` for the function `fn`, which `module` has as `name`.

    Its constructor takes `parameters`, {name: default} in their order, and hands
    them on: base.__init__(self, fn, **arguments).
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter("self", kind),
            *(inspect.Parameter(n, kind, default=d) for n, d in parameters.items()),
        ]
    )

    def __init__(self, *args, **kwargs):  # noqa: N807
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{name}.__init__() {e}") from None
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        del arguments["self"]
        base.__init__(self, fn, **arguments)

    __init__.__signature__ = signature
    return type(
        name,
        (base,),
        {"__init__": __init__, "__doc__": doc, "__module__": module, **members},
    )
