"""tf.autograph: conversion asked for by name."""

from headrace.autograph.calls import ag__, as_function
from headrace.autograph.conversion import converter, stored
from headrace.autograph.conversion.errors import AutoGraphError, ConversionError
from headrace.autograph.status import ConversionOptions, is_autograph_artifact


def _options(recursive, features):
    return ConversionOptions(recursive, True, True, features)


def to_graph(entity, recursive=True, experimental_optional_features=None):
    """A function with the control flow of `entity`, a function, method or callable
    object, on tensors made that of graphs.

    Args:
      recursive: convert the functions that it calls, too.
      experimental_optional_features: a Feature or several.

    Raises ConversionError where it cannot be converted.
    """
    if is_autograph_artifact(entity):
        return entity
    function = _checked(entity)
    options = _options(recursive, experimental_optional_features)
    try:
        made = converter.converted(function, options, ag__)
    except AutoGraphError:
        raise
    except Exception as e:
        raise ConversionError(f"converting {entity}: {type(e).__name__}: {e}") from e
    stored.write()
    return made


def to_graph_v1(
    entity,
    recursive=True,
    arg_values=None,
    arg_types=None,
    experimental_optional_features=None,
):
    """to_graph; `arg_values` and `arg_types` are not used any more, as upstream."""
    del arg_values, arg_types
    return to_graph(entity, recursive, experimental_optional_features)


def to_code_v1(
    entity,
    recursive=True,
    arg_values=None,
    arg_types=None,
    indentation="  ",
    experimental_optional_features=None,
):
    """to_code; the arguments between are not used any more, as upstream."""
    del arg_values, arg_types, indentation
    return to_code(entity, recursive, experimental_optional_features)


def _checked(entity):
    if isinstance(entity, type):
        raise NotImplementedError(f"to_graph: classes are not converted: {entity}")
    found = as_function(getattr(entity, "python_function", entity))
    if found is None:
        raise ConversionError(f"{entity!r} has no code that could be converted")
    return found[0]


def to_code(entity, recursive=True, experimental_optional_features=None):
    """The source code of to_graph's function."""
    options = _options(recursive, experimental_optional_features)
    return converter.text(_checked(entity), options)
