"""tf.compat.v1.train.SessionManager: sessions with values in their variables."""

import time

from headrace.context import errors, stack
from headrace.framework.settings import logging
from headrace.framework.support import signatures
from headrace.train.checkpoint_state import get_checkpoint_state
from headrace.v1 import session as sessions


def _text(ready):
    """The names that a ready operation reported, as text."""
    return ", ".join(
        v.decode() if isinstance(v, bytes) else str(v) for v in ready.ravel()
    )


def _restoring(before=None):
    """Gives a method of **kwargs the parameters that say what a session restores."""
    parameters = signatures.from_text(
        "saver=None, checkpoint_dir=None, checkpoint_filename_with_path=None, "
        "wait_for_checkpoint=False, max_wait_secs=7200, config=None"
    )
    return signatures.taking(parameters, before)


# Between two looks whether another process has initialized the variables. TensorFlow
# waits recovery_wait_secs each time, which is no less than half a minute of a program
# whose chief was a moment late; here that is the most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class SessionManager:
    """Makes sessions whose variables are restored from a checkpoint or initialized."""

    @signatures.keeping(
        "local_init_op=None, ready_op=None, ready_for_local_init_op=None, graph=None, "
        "recovery_wait_secs=30, local_init_run_options=None, local_init_feed_dict=None"
    )
    def __init__(self):
        if self._ready_for_local_init_op is not None and self._local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a "
                "local_init_op , ready_for_local_init_op "
                f"[{self._ready_for_local_init_op}]"
            )
        if self._graph is None:
            self._graph = stack.default_graph()

    def _restore_checkpoint(self, master, saver, checkpoint_dir, config, **given):
        """(session, whether its variables have a checkpoint's values)."""
        file = given["checkpoint_filename_with_path"]
        if checkpoint_dir and file:
            raise ValueError(
                "Can not provide both checkpoint_dir and checkpoint_filename_with_path."
            )
        session = sessions.Session(master, graph=self._graph, config=config)
        if not saver or not (checkpoint_dir or file):
            return session, False
        if file:
            saver.restore(session, file)
            return session, True
        waited = 0
        state = get_checkpoint_state(checkpoint_dir)
        while not state or not state.model_checkpoint_path:
            if not given["wait_for_checkpoint"] or waited >= given["max_wait_secs"]:
                return session, False
            logging.info("Waiting for checkpoint to be available.")
            time.sleep(self._recovery_wait_secs)
            waited += self._recovery_wait_secs
            state = get_checkpoint_state(checkpoint_dir)
        saver.restore(session, state.model_checkpoint_path)
        saver.recover_last_checkpoints(list(state.all_model_checkpoint_paths))
        return session, True

    @_restoring("init_feed_dict")
    def prepare_session(
        self, master, init_op=None, init_feed_dict=None, init_fn=None, **given
    ):
        """A session that is ready: restored if there is a checkpoint, else initialized
        by `init_op` and `init_fn`."""
        session, is_loaded = self._restore_checkpoint(master, **given)
        if not is_loaded:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError(
                    "Model is not initialized and no init_op or init_fn or "
                    "local_init_op was given"
                )
            if init_op is not None:
                session.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(session)
        started = "Init operations did not make model ready"
        for check, what in (
            (self._try_run_local_init_op, f"{started} for local_init."),
            (self._model_ready, f"{started}."),
        ):
            good, message = check(session)
            if not good:
                name = getattr(init_op, "name", None)
                local = getattr(self._local_init_op, "name", None)
                raise RuntimeError(
                    f"{what}  Init op: {name}, init fn: {init_fn}, local_init_op: "
                    f"{local}, error: {message}"
                )
        return session

    @_restoring()
    def recover_session(self, master, **given):
        """(session, whether it is ready by a checkpoint)."""
        session, is_loaded = self._restore_checkpoint(master, **given)
        good, message = self._try_run_local_init_op(session)
        if not good:
            where = "from checkpoint" if is_loaded else "without a checkpoint"
            logging.info("Restoring model %s did not make it ready for local "
                         "initialization: %s", where, message)  # fmt: skip
            return session, False
        good, message = self._model_ready(session)
        if not good:
            logging.info("Restoring model did not make it ready: %s", message)
            return session, False
        if is_loaded:
            logging.info("Restored model from %s", given["checkpoint_dir"])
        return session, is_loaded

    def wait_for_session(self, master, config=None, max_wait_secs=float("inf")):
        """A session whose variables another process initialized."""
        begun, pause, told = time.time(), _FIRST_PAUSE, None
        while True:
            session = sessions.Session(master, graph=self._graph, config=config)
            good, message = self._try_run_local_init_op(session)
            if good:
                good, message = self._model_ready(session)
            if good:
                return session
            session.close()
            pause = min(2 * pause, _LONGEST_PAUSE, self._recovery_wait_secs)
            if time.time() - begun + pause > max_wait_secs:
                raise errors.DeadlineExceededError._of(
                    f"Session was not ready after waiting {max_wait_secs} secs."
                )
            if message != told:
                told = message
                logging.info("Waiting for model to be ready.  Ready_for_local_init_op: "
                             "%s", message)  # fmt: skip
            time.sleep(pause)

    # --- whether a session is ready ---

    def _model_ready(self, session):
        return ready(self._ready_op, session, "Model not ready")

    def _try_run_local_init_op(self, session):
        """(whether local initialization is done, what is missing)."""
        if self._local_init_op is None:
            return True, None
        failure = "Model not ready for local init"
        good, message = ready(self._ready_for_local_init_op, session, failure)
        if not good:
            return False, message
        logging.info("Running local_init_op.")
        session.run(
            self._local_init_op,
            feed_dict=self._local_init_feed_dict,
            options=self._local_init_run_options,
        )
        logging.info("Done running local_init_op.")
        return True, None


def ready(op, session, failure):
    """(whether the operation reports nothing missing, what it reports)."""
    if op is None:
        return True, None
    try:
        value = session.run(op)
    except errors.FailedPreconditionError as e:
        if "uninitialized" not in str(e):
            logging.warn("%s : error [%s]", failure, e)
            raise
        return False, str(e)
    if value is None or value.dtype.kind not in "OSU" or value.size == 0:
        return True, None
    return False, f"Variables not initialized: {_text(value)}"
