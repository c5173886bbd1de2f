"""tf.estimator.experimental.InMemoryEvaluatorHook: evaluations amid training."""

from headrace import _api as tf
from headrace.estimator import evaluation
from headrace.estimator.estimator import checked_hooks
from headrace.v1 import collections
from headrace.v1.train import global_step
from headrace.v1.train.scaffold import Scaffold
from headrace.v1.train.session_run_hook import SessionRunArgs, SessionRunHook
from headrace.v1.train.timer import SecondOrStepTimer


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates the variables of the training it is a hook of: when it begins, every
    `every_n_iter` steps and at the end.

    `estimator` is the one that is trained; `input_fn`, `steps`, `hooks` and `name` are
    those of its evaluate(). ValueError unless every_n_iter is positive.
    """

    def __init__(
        self, estimator, input_fn, steps=None, hooks=None, name=None, every_n_iter=100
    ):
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if (
            estimator.config.num_ps_replicas > 0
            or estimator.config.num_worker_replicas > 1
        ):
            raise ValueError(
                "InMemoryEvaluator supports only single machine (aka Local) setting."
            )
        self._estimator, self._input_fn, self._steps = estimator, input_fn, steps
        self._own_hooks, self._name = checked_hooks(hooks), name
        self._timer = SecondOrStepTimer(every_steps=every_n_iter)

    def begin(self):
        self._timer.reset()
        self._step = global_step.get_global_step()
        self._trained = _by_name(tf.compat.v1.get_default_graph())
        self._graph = self._estimator._new_graph()
        with self._graph.as_default():
            self._evaluation = evaluation.Evaluation(
                self._estimator, self._input_fn, self._own_hooks, self._steps
            )
            own = _by_name(self._graph)
            self._names = sorted(set(own) & set(self._trained))
            self._wires = {
                n: tf.compat.v1.placeholder(own[n].dtype, own[n].shape)
                for n in self._names
            }
            self._takes = tf.group(
                *[own[n].assign(self._wires[n], read_value=False) for n in self._names]
            )
            self._scaffold = self._evaluation.spec.scaffold

    def after_create_session(self, session, coord):
        self._trained = _by_name(session.graph)  # those that other hooks made too
        self._timer.update_last_triggered_step(session.run(self._step))
        self._evaluate(session)

    def before_run(self, run_context):
        return SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        step = run_values.results
        if self._timer.should_trigger_for_step(step + 1):
            self._timer.update_last_triggered_step(step + 1)
            self._evaluate(run_context.session)

    def end(self, session):
        step = session.run(self._step)
        if self._timer.last_triggered_step() != step:
            self._evaluate(session)

    def _evaluate(self, session):
        values = session.run({n: self._trained[n] for n in self._names})
        given = {self._wires[n]: x for n, x in values.items()}
        with self._graph.as_default():
            scaffold = Scaffold(
                init_fn=lambda scaffold, own: own.run(self._takes, given),
                copy_from_scaffold=self._scaffold,
            )
            found = self._evaluation.run(scaffold, None)
            evaluation.write(self._estimator.eval_dir(self._name), found, None)


def _by_name(graph):
    found = graph.get_collection(collections.GraphKeys.GLOBAL_VARIABLES)
    return {v._shared_name: v for v in found}
