"""if statements and conditional expressions."""

from headrace.autograph import checks, tensors
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
    ended = []

    def end(which, function):
        values = get_state()[:nouts]
        checks.branch(values, names, which)
        ended.append(tuple(checks.as_result(v, function) for v in values))
        raw_ends.append(values)
        return ended[-1]

    raw_ends = []

    def main_branch():
        set_state(before)
        body()
        return end("main", main_branch)

    def else_branch():
        set_state(before)
        orelse()
        results = end("else", else_branch)
        checks.branches_alike(raw_ends[0], raw_ends[1], names)
        return results

    after = branches.cond(cond, main_branch, else_branch)
    set_state((*(after if nouts else ()), *before[nouts:]))


def if_exp(cond, if_true, if_false, expr_repr):
    """`if_true() if cond else if_false()`; `expr_repr` is the condition's text."""
    if not tensors.is_tensor(cond) or not tensors.in_graph():
        return if_true() if cond else if_false()
    ends = []

    def end(value, which, function):
        checks.branch([value], [expr_repr], which)
        ends.append(value)
        return checks.as_result(value, function)

    def main_branch():
        return end(if_true(), "main", main_branch)

    def else_branch():
        result = end(if_false(), "else", else_branch)
        _same_dtypes(ends, expr_repr)
        return result

    return branches.cond(tensors.tensor(cond), main_branch, else_branch)


def _same_dtypes(ends, name):
    """Structures that differ are told of by tf.cond, dtypes by the expression."""
    main, other = ends
    if len(tensors.leaves(main)) == len(tensors.leaves(other)):
        checks.branches_alike([main], [other], [name])
