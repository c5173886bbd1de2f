"""Attributes that tf.function writes into the functions that it makes."""

_KNOWN = (
    "_disable_acd",
    "_implements",
    "_noinline",
    "_tf_data_function",
    "api_implements",
    "api_preferred_device",
    "runtime_constant_optimization",
)
# It would change what a function does.
_REFUSED = ("disable_summaries_at_runtime",)


def checked(attributes, implements=None):
    """{name: bool or str} of experimental_attributes and experimental_implements.

    Raises ValueError for names that tf.function does not know or values of another
    type, NotImplementedError for those that Headrace does not support.
    """
    found = {}
    for name in attributes or ():
        if name in _REFUSED:
            raise NotImplementedError(
                f"tf.function: the attribute `{name}` is not supported"
            )
        if name not in _KNOWN:
            raise ValueError(
                f"`{name} is not supported by tf.function as an attribute."
            )
        value = attributes[name]
        if not isinstance(value, (bool, str)):
            raise ValueError(
                f"Attribute {name} must be bool or str. Got {type(value)}."
            )
        found[name] = value
    if implements is not None:
        if not isinstance(implements, str):
            raise ValueError(
                f"experimental_implements must be str. Got {type(implements)}."
            )
        found["_implements"] = implements
    return found
