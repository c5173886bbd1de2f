"""Estimator.predict."""

from headrace.context import errors
from headrace.estimator.mode_keys import ModeKeys
from headrace.v1.train import monitored_session


def predict(estimator, input_fn, keys, hooks, checkpoint_path, single):
    """Yields predictions. The graph is the default one only while it is at work, not
    for those who take them."""
    path = estimator._checkpoint_for(checkpoint_path, "predict")
    graph = estimator._new_graph()
    with graph.as_default():
        spec, input_hooks = estimator._spec_and_hooks(input_fn, ModeKeys.PREDICT)
        wanted = _chosen(spec.predictions, keys)
        session = monitored_session.MonitoredSession(
            session_creator=estimator._creator_of_sessions(spec.scaffold, path),
            hooks=[*input_hooks, *hooks, *spec.prediction_hooks],
        )
    failure = None
    try:
        while True:
            with graph.as_default():
                if session.should_stop():
                    break
                try:
                    values = session.run(wanted)
                except (errors.OutOfRangeError, StopIteration):
                    break
            if not single:
                yield values
            else:
                yield from _examples(values)
    except BaseException as e:
        failure = type(e)
        raise
    finally:
        with graph.as_default():
            if failure is GeneratorExit:
                failure = None
            session._close_internal(failure)


def _chosen(predictions, keys):
    if not keys:
        return predictions
    keys = [keys] if isinstance(keys, str) else list(keys)
    if not isinstance(predictions, dict):
        raise ValueError(
            "predict_keys argument is not valid in case of non-dict predictions."
        )
    chosen = {k: v for k, v in predictions.items() if k in keys}
    if not chosen:
        raise ValueError(
            f"Expected to run at least one output from {list(predictions)}, provided "
            f"{keys}."
        )
    return chosen


def _examples(values):
    """The examples of a batch: rows, or dicts of rows."""
    if not isinstance(values, dict):
        yield from values
        return
    for i in range(_batch_length(values)):
        yield {key: value[i] for key, value in values.items()}


def _batch_length(values):
    length = None
    for key, value in values.items():
        length = length or value.shape[0]
        if value.shape[0] != length:
            raise ValueError(
                "Batch length of predictions should be same. "
                f"{key} has different batch length than others."
            )
    return length
