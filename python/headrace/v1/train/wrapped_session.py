"""Sessions around sessions: each adds one thing to a run."""

from headrace.context import errors, stack
from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.framework.support import protos
from headrace.v1.train import queue_runner
from headrace.v1.train.coordinator import Coordinator
from headrace.v1.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunValues,
)

# What makes a session be made anew.
PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)


class WrappedSession:
    """Base: runs the session inside, and does not after it was closed."""

    def __init__(self, sess):
        self._sess = sess

    graph = read_only("_sess.graph")

    def _inner(self):
        """The plain session inside of all."""
        inner = self._sess
        return inner._inner() if isinstance(inner, WrappedSession) else inner

    def should_stop(self):
        return self._sess is None or self._check_stop() or _asks_to_stop(self._sess)

    def _check_stop(self):
        return False

    def close(self):
        if self._sess:
            try:
                self._sess.close()
            except PREEMPTION_ERRORS as e:
                logging.error("An error occurred when attempting to close the session. "
                              "This may be due to a preemption. Error: %s", e)  # fmt: skip
            finally:
                self._sess = None

    def run(self, *args, **kwargs):
        return self._sess.run(*args, **kwargs)


def _asks_to_stop(session):
    return isinstance(session, WrappedSession) and session.should_stop()


class CoordinatedSession(WrappedSession):
    """Stops when its coordinator does, and raises what its threads raised."""

    def __init__(self, sess, coord, stop_grace_period_secs=120):
        super().__init__(sess)
        self._coord = coord
        self._stop_grace_period_secs = stop_grace_period_secs

    def _check_stop(self):
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self):
        self._coord.request_stop()
        try:
            self._coord.join(
                stop_grace_period_secs=self._stop_grace_period_secs,
                ignore_live_threads=True,
            )
        finally:
            try:
                super().close()
            except Exception:  # what the threads raised matters more
                pass

    def run(self, *args, **kwargs):
        try:
            return self._sess.run(*args, **kwargs)
        except PREEMPTION_ERRORS:
            raise
        except Exception:
            self._coord.raise_requested_exception()
            raise


class HookedSession(WrappedSession):
    """Calls hooks around every run."""

    def __init__(self, sess, hooks):
        super().__init__(sess)
        self._hooks = hooks
        self._should_stop = False

    def _check_stop(self):
        return self._should_stop

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        actual = {"caller": fetches}
        context = SessionRunContext(
            original_args=SessionRunArgs(fetches, feed_dict), session=self._inner()
        )
        feed_dict, options = self._ask_hooks(context, actual, feed_dict, options)
        # Messages are made only where somebody looks at them.
        if options is not None and run_metadata is None:
            run_metadata = protos.RunMetadata()
        outputs = self._sess.run(
            actual, feed_dict=feed_dict, options=options, run_metadata=run_metadata
        )
        for hook in self._hooks:
            hook.after_run(
                context,
                SessionRunValues(
                    results=outputs.get(hook),
                    options=options,
                    run_metadata=run_metadata,
                ),
            )
        self._should_stop = self._should_stop or context.stop_requested
        return outputs["caller"]

    def _ask_hooks(self, context, fetches, user_feeds, options):
        """(feeds, options) of a run, and in `fetches` what hooks want too."""
        from_hooks = {}
        for hook in self._hooks:
            request = hook.before_run(context)
            if request is None:
                continue
            if request.fetches is not None:
                fetches[hook] = request.fetches
            if request.feed_dict:
                _refuse_twice(from_hooks, request.feed_dict)
                from_hooks.update(request.feed_dict)
            if request.options:
                options = _merged_options(options, request.options)
        if not from_hooks:
            return user_feeds, options
        if not user_feeds:
            return from_hooks, options
        _refuse_twice(from_hooks, user_feeds, "a SessionRunHook and user")
        return {**from_hooks, **user_feeds}, options


def _refuse_twice(fed, feeds, who="two hooks"):
    known = {id(k) for k in feeds}
    conflicts = [k for k in fed if id(k) in known]
    if conflicts:
        raise RuntimeError(f"Same tensor is fed by {who}. Conflict(s): {conflicts}")


def _merged_options(options, wanted):
    """The most that either of two RunOptions asks for."""
    merged = type(wanted)()
    if options is not None:
        merged.CopyFrom(options)
    numbers = ("trace_level", "timeout_in_ms", "inter_op_thread_pool")
    for field in (*numbers, "output_partition_graphs"):
        setattr(merged, field, max(getattr(merged, field), getattr(wanted, field)))
    return merged


class RecoverableSession(WrappedSession):
    """Makes a new session where one is lost."""

    def __init__(self, creator):
        self._creator = creator
        super().__init__(self._create())

    def _create(self):
        while True:
            try:
                return self._creator.create_session()
            except PREEMPTION_ERRORS as e:
                _log_loss(e)

    def _check_stop(self):
        try:
            return _asks_to_stop(self._sess)
        except PREEMPTION_ERRORS as e:
            _log_loss(e)
            self.close()
            self._sess = self._create()
            return False

    def run(self, *args, **kwargs):
        while True:
            try:
                if self._sess is None:
                    self._sess = self._create()
                return self._sess.run(*args, **kwargs)
            except PREEMPTION_ERRORS as e:
                _log_loss(e)
                self.close()
                self._sess = None


def _log_loss(error):
    logging.info(
        "An error was raised. This may be due to a preemption in a connected worker or "
        "parameter server. The current session will be closed and a new session will "
        "be created. Error: %s",
        error,
    )


class CoordinatedSessionCreator:
    """Makes sessions with hooks and a coordinator around."""

    def __init__(self, session_creator, hooks, stop_grace_period_secs):
        self._session_creator = session_creator
        self._hooks = hooks
        self.coord = None
        self.tf_sess = None
        self._stop_grace_period_secs = stop_grace_period_secs

    def create_session(self):
        self.tf_sess = self._session_creator.create_session()
        self.coord = Coordinator(clean_stop_exception_types=[])
        if stack.default_graph().get_collection("queue_runners"):
            queue_runner.start_queue_runners(sess=self.tf_sess, coord=self.coord)
        for hook in self._hooks:
            hook.after_create_session(self.tf_sess, self.coord)
        return CoordinatedSession(
            HookedSession(self.tf_sess, self._hooks),
            self.coord,
            self._stop_grace_period_secs,
        )
