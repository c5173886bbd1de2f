"""if statements and conditional expressions."""

from headrace.autograph import checks, lists, tensors
from headrace.control_flow import branches


def if_stmt(cond, body, orelse, get_state, set_state, symbol_names, nouts):
    """Runs `body` or `orelse`: Python's if, or tf.cond of a tensor in a graph.

    `get_state` and `set_state` read and set the variables `symbol_names` that the
    branches change; the first `nouts` are used afterwards, and both branches must give
    them values of one structure and dtypes.
    """
    if not tensors.is_tensor(cond) or not tensors.in_graph():
        if cond:
            body()
        else:
            orelse()
        return
    cond = tensors.bool_scalar(cond, "if statement")
    names = symbol_names[:nouts]
    before = get_state()
    if any(map(lists.may_grow, before[:nouts])):
        before = _with_arrays(before, (body, orelse), get_state, set_state)
    ends = []

    def end(which):
        ends.append(get_state()[:nouts])
        checks.branch(ends[-1], names, which)

    def results(function):
        return tuple(checks.as_result(v, function) for v in ends[-1])

    def main_branch():
        set_state(checks.copied(before))
        body()
        end("main")
        return results(main_branch)

    def else_branch():
        set_state(checks.copied(before))
        orelse()
        end("else")
        checks.branches_alike(*ends, names)
        return results(else_branch)

    after = branches.cond(cond, main_branch, else_branch)
    set_state((*(after if nouts else ()), *before[nouts:]))


def _with_arrays(before, functions, get_state, set_state):
    """The values before, TensorArrays for lists whose length a branch changes."""
    for function in functions:
        with tensors.scratch_graph():
            set_state(checks.copied(before))
            function()
            after = get_state()
        pairs = zip(before, after)
        arrays = [(value, lists.as_array(value, end)) for value, end in pairs]
        before = tuple(v if array is None else array for v, array in arrays)
    return before


def if_exp(cond, if_true, if_false, expr_repr):
    """`if_true() if cond else if_false()`; `expr_repr` is the condition's text."""
    if not tensors.is_tensor(cond) or not tensors.in_graph():
        return if_true() if cond else if_false()
    ends = []

    def main_branch():
        ends.append(if_true())
        checks.branch(ends, [expr_repr], "main")
        return checks.as_result(ends[0], main_branch)

    def else_branch():
        ends.append(if_false())
        checks.branch(ends[1:], [expr_repr], "else")
        for which, value in zip(("main", "else"), ends):
            checks.not_none(expr_repr, value, which)
        if len(tensors.leaves(ends[0])) == len(tensors.leaves(ends[1])):
            checks.branches_alike(*([end] for end in ends), [expr_repr])
        return checks.as_result(ends[1], else_branch)  # tf.cond tells of the numbers

    return branches.cond(tensors.tensor(cond), main_branch, else_branch)
