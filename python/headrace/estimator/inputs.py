"""What input functions give: features and labels of a graph."""

import inspect

from headrace.data import graph_iterator
from headrace.data.dataset import Dataset
from headrace.estimator.mode_keys import ModeKeys
from headrace.v1.train.session_run_hook import SessionRunHook


class IteratorHook(SessionRunHook):
    """Sets an iterator to its beginning in every new session."""

    def __init__(self, iterator):
        self._iterator = iterator

    def begin(self):
        self._initializer = self._iterator.initializer

    def after_create_session(self, session, coord):
        session.run(self._initializer)


def argument_names(function):
    """The names of a callable's arguments that are not bound yet."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(p.name for p in parameters if p.kind not in kinds)


def call_input_fn(input_fn, mode, params, config):
    """The input function's result; it is given the arguments that it names."""
    names = argument_names(input_fn)
    known = {"mode": mode, "params": params, "config": config}
    return input_fn(**{n: v for n, v in known.items() if n in names})


def features_and_labels(result, mode):
    """(features, labels, hooks) of what an input function returned. For predictions
    labels are left aside."""
    result, hooks = _next_of(result)
    if not isinstance(result, (list, tuple)):
        return result, None, hooks
    if mode == ModeKeys.PREDICT:
        return result[0], None, hooks
    if len(result) != 2:
        raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
    return result[0], result[1], hooks


def _next_of(result):
    if not isinstance(result, Dataset):
        return result, []
    iterator = graph_iterator.make_initializable_iterator(result)
    return iterator.get_next(), [IteratorHook(iterator)]
