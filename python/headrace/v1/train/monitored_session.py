"""tf.compat.v1.train.MonitoredSession and its kin."""

import inspect

from headrace.context import errors, stack
from headrace.context.properties import read_only
from headrace.framework.support import signatures
from headrace.v1.train import saver_hooks
from headrace.v1.train.scaffold import Scaffold
from headrace.v1.train.session_creators import ChiefSessionCreator, WorkerSessionCreator
from headrace.v1.train.wrapped_session import (
    CoordinatedSessionCreator,
    RecoverableSession,
)

_DEFAULT = object()  # not given


class StepContext:
    """What a function that run_step_fn() calls may do."""

    def __init__(self, session, run_with_hooks_fn):
        self._session = session
        self._run_with_hooks_fn = run_with_hooks_fn

    session = read_only("_session")

    def run_with_hooks(self, *args, **kwargs):
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self):
        raise StopIteration("step_fn has requested the iterations to stop.")


class _MonitoredSession:
    """A session that calls hooks and stops cleanly."""

    StepContext = StepContext

    def __init__(
        self, session_creator, hooks, should_recover, stop_grace_period_secs=120
    ):
        self._graph_was_finalized = stack.default_graph().finalized
        self._hooks = list(hooks or [])
        for hook in self._hooks:
            hook.begin()
        self._coordinated_creator = CoordinatedSessionCreator(
            session_creator=session_creator or ChiefSessionCreator(),
            hooks=self._hooks,
            stop_grace_period_secs=stop_grace_period_secs,
        )
        if should_recover:
            self._sess = RecoverableSession(self._coordinated_creator)
        else:
            self._sess = self._coordinated_creator.create_session()

    @property
    def graph(self):
        """The graph; None once the session is closed."""
        session = self._tf_sess()
        return None if session is None else session.graph

    def _tf_sess(self):
        return self._coordinated_creator.tf_sess

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Runs `fetches` and what the hooks want."""
        if self._sess is None:
            raise RuntimeError("Session is already closed.")
        return self._sess.run(
            fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata
        )

    def run_step_fn(self, step_fn):
        """Calls `step_fn(step_context)`; what it runs by session calls no hooks."""
        names = tuple(inspect.signature(step_fn).parameters)
        if names not in (("step_context",), ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and "
                "`step_context` arguments if it's an instance method. Got "
                f"{names} instead."
            )
        context = StepContext(self._tf_sess(), self.run)
        return step_fn(step_context=context)

    def should_stop(self):
        """Whether a hook or the coordinator asked to stop, or the session is closed."""
        return self._sess is None or self._sess.should_stop()

    def close(self):
        """Ends the session and its hooks."""
        self._close_internal()

    def __enter__(self):
        return self

    def __exit__(self, exception_type, exception_value, traceback):
        if exception_type in (errors.OutOfRangeError, StopIteration):
            exception_type = None
        self._close_internal(exception_type)
        return exception_type is None

    def _close_internal(self, exception_type=None):
        try:
            if not exception_type:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                for hook in self._hooks:
                    hook.end(self._coordinated_creator.tf_sess)
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._sess = None
                self._coordinated_creator.tf_sess = None
                self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    stack.default_graph()._unsafe_unfinalize()


class MonitoredSession(_MonitoredSession):
    """A session with hooks that is made anew where it is lost."""

    def __init__(self, session_creator=None, hooks=None, stop_grace_period_secs=120):
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A session with hooks; an error ends it."""

    @signatures.having(
        "self, hooks=None, scaffold=None, master='', config=None, checkpoint_dir=None, "
        "stop_grace_period_secs=120, checkpoint_filename_with_path=None"
    )
    def __init__(self, hooks, stop_grace_period_secs, **of_creator):
        creator = ChiefSessionCreator(**of_creator)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self):
        """The plain session."""
        return self._tf_sess()


def _times(steps, secs, default):
    """(steps, seconds) between two writes; `default` where neither was given."""
    if steps is _DEFAULT and secs is _DEFAULT:
        return default
    return [None if value is _DEFAULT else value for value in (steps, secs)]


def MonitoredTrainingSession(  # noqa: N802  (upstream's name)
    master="",
    is_chief=True,
    checkpoint_dir=None,
    scaffold=None,
    hooks=None,
    chief_only_hooks=None,
    save_checkpoint_secs=_DEFAULT,
    save_summaries_steps=_DEFAULT,
    save_summaries_secs=_DEFAULT,
    config=None,
    stop_grace_period_secs=120,
    log_step_count_steps=100,
    max_wait_secs=7200,
    save_checkpoint_steps=_DEFAULT,
    summary_dir=None,
    save_graph_def=True,
):
    """A MonitoredSession with the hooks that training wants: checkpoints, summaries
    and steps per second, in `checkpoint_dir`."""
    scaffold = scaffold or Scaffold()
    if not is_chief:
        creator = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(creator, hooks or [], stop_grace_period_secs)
    summary_steps, summary_secs = _times(
        save_summaries_steps, save_summaries_secs, (100, None)
    )
    steps, secs = _times(save_checkpoint_steps, save_checkpoint_secs, (None, 600))
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    all_hooks = list(chief_only_hooks or [])
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(
                saver_hooks.StepCounterHook(
                    output_dir=summary_dir, every_n_steps=log_step_count_steps
                )
            )
        if (summary_steps and summary_steps > 0) or (summary_secs and summary_secs > 0):
            all_hooks.append(
                saver_hooks.SummarySaverHook(
                    scaffold=scaffold,
                    save_steps=summary_steps,
                    save_secs=summary_secs,
                    output_dir=summary_dir,
                )
            )
    if checkpoint_dir and ((secs and secs > 0) or (steps and steps > 0)):
        all_hooks.append(
            saver_hooks.CheckpointSaverHook(
                checkpoint_dir,
                save_steps=steps,
                save_secs=secs,
                scaffold=scaffold,
                save_graph_def=save_graph_def,
            )
        )
    all_hooks += list(hooks or [])
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)
