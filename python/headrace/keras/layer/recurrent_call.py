"""What recurrent layers are called with."""


def parts_of_call(inputs, states, constants, num_constants):
    """(inputs, list of initial states or None, list of constants or None) of what a
    recurrent layer is called with. A list as inputs has them all, the constants last;
    AssertionError if others come beside it."""
    if isinstance(inputs, list):
        assert states is None and constants is None, "a list has states and constants"
        if num_constants:
            constants = inputs[-num_constants:]
            inputs = inputs[:-num_constants]
        inputs, *states = inputs
    return inputs, _listed(states), _listed(constants)


def _listed(values):
    """A list of values: one alone is one; None for none."""
    if values is None or isinstance(values, (list, tuple)):
        return list(values) if values else None
    return [values]
