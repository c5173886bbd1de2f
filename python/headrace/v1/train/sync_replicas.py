"""tf.compat.v1.train.SyncReplicasOptimizer: one update of the gradients of many workers."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.settings import logging
from headrace.graph import placement
from headrace.v1 import accumulators, collections
from headrace.v1.train.optimizer.base import Optimizer
from headrace.v1.train.queue_runner import QueueRunner
from headrace.v1.train.session_manager import ready as ready_in
from headrace.v1.train.session_run_hook import SessionRunHook
from headrace.v1.variable_scope import variable_v1

_TOO_EARLY = (
    "SyncReplicasOptimizer.apply_gradient should be called before using the hook."
)


def _operation(made):
    """The operation that assigned a variable, which is given as its value or itself."""
    return getattr(made, "op", made)


class SyncReplicasOptimizer(Optimizer):
    """Workers' gradients are gathered, and applied once enough of them are there.

    Each variable has an accumulator beside it, which drops gradients of steps that are
    over and counts them (`num_dropped_gradients`). A worker pushes its gradients and waits for a token, the number of the step that
    it computes next; the chief's queue runner takes the means of `replicas_to_aggregate`
    gradients, applies them by `opt`, counts the step and gives out
    max(replicas_to_aggregate, total_num_replicas) tokens.

    Args:
      opt: the Optimizer that applies the means.
      replicas_to_aggregate: how many gradients make a step; fewer than there are workers
        leaves the last ones out, more lets fast workers give several.
      total_num_replicas: how many workers there are; replicas_to_aggregate by default.
      variable_averages: an ExponentialMovingAverage that follows each step, or None.
      variables_to_average: of which variables.
      use_locking: whether `opt`'s updates lock.
      name: the optimizer's name.
    """

    def __init__(
        self,
        opt,
        replicas_to_aggregate,
        total_num_replicas=None,
        variable_averages=None,
        variables_to_average=None,
        use_locking=False,
        name="sync_replicas",
    ):
        if total_num_replicas is None:
            total_num_replicas = replicas_to_aggregate
        super().__init__(use_locking, name)
        logging.info(
            "SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s",
            replicas_to_aggregate,
            total_num_replicas,
        )
        for key, value in (
            ("_opt", opt),
            ("_replicas_to_aggregate", replicas_to_aggregate),
            ("_total_num_replicas", total_num_replicas),
            ("_tokens_per_step", max(total_num_replicas, replicas_to_aggregate)),
            ("_variable_averages", variable_averages),
            ("_variables_to_average", variables_to_average),
            ("_gradients_applied", False),
            ("_global_step", None),
            ("_sync_token_queue", None),
            ("_chief_queue_runner", None),
            ("_accumulators", ()),
        ):
            object.__setattr__(self, key, value)

    def compute_gradients(self, *args, **kwargs):
        """(gradient, variable) pairs, as the optimizer inside computes them."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Pushes gradients, then waits for a token.

        Returns:
          The operation that a worker runs for a step.

        Raises:
          ValueError: without pairs, or without the step's variable.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        object.__setattr__(self, "_global_step", global_step)
        self._make_local_step()
        with tf.name_scope(self._name) as scope:
            made = self._local_step.read_value()
            pushed, taken, kept = self._accumulated(pairs, made)
        with tf.device(global_step.device), tf.name_scope(""):
            update = self._opt.apply_gradients(taken, global_step)
            train = self._wait_for_token(made, pushed, update, kept)
        with tf.name_scope(scope):
            self._begin_accumulators(kept)
        object.__setattr__(self, "_accumulators", tuple(kept))
        object.__setattr__(self, "_gradients_applied", True)
        return train

    def _make_local_step(self):
        """The step that this worker's gradients are of: a variable of the worker."""
        anchor = tf.no_op()  # it lies with the worker
        with placement.colocate_with(anchor):
            local = variable_v1(
                initial_value=0,
                trainable=False,
                collections=[collections.GraphKeys.LOCAL_VARIABLES],
                dtype=self._global_step.dtype.base_dtype,
                name="sync_rep_local_step",
            )
        object.__setattr__(self, "_local_step", local)
        begin = local.assign(self._global_step)
        ready = collections.report_uninitialized_variables(
            collections.global_variables()
        )
        for name, made in (
            ("local_step_init_op", begin),
            ("chief_init_op", _operation(begin)),
            ("ready_for_local_init_op", ready),
        ):
            object.__setattr__(self, name, made)

    def _accumulated(self, pairs, made):
        """(operations that push, (mean, variable) pairs, (accumulator, device) pairs)."""
        pushed, taken, kept = [], [], []
        for gradient, variable in pairs:
            device, shared = variable.device, variable.name + "/grad_accum"
            with tf.device(device):
                if gradient is None:
                    taken.append((None, variable))
                    continue
                push, take, accumulator = self._push_and_take(
                    gradient, made, variable, shared
                )
            pushed.append(push)
            taken.append((take, variable))
            kept.append((accumulator, device))
        return pushed, taken, kept

    def _push_and_take(self, gradient, step, variable, shared_name):
        wanted = self._replicas_to_aggregate
        if isinstance(gradient, tf.Tensor):
            accumulator = accumulators.ConditionalAccumulator(
                gradient.dtype, shape=variable.shape, shared_name=shared_name
            )
            push = accumulator.apply_grad(gradient, local_step=step)
            return push, accumulator.take_grad(wanted), accumulator
        if not isinstance(gradient, tf.IndexedSlices):
            raise ValueError("Unknown grad type!")
        accumulator = accumulators.SparseConditionalAccumulator(
            gradient.dtype, shape=(), shared_name=shared_name
        )
        push = accumulator.apply_indexed_slices_grad(gradient, local_step=step)
        return push, accumulator.take_indexed_slices_grad(wanted), accumulator

    def _wait_for_token(self, made, pushed, update, kept):
        """The queue of tokens, its runner, and the operation that waits for one."""
        step = self._global_step
        with tf.device("/cpu:*"):
            queue = tf.queue.FIFOQueue(
                -1,
                step.dtype.base_dtype,
                shapes=[()],
                name="sync_token_q",
                shared_name="sync_token_q",
            )
        object.__setattr__(self, "_sync_token_queue", queue)
        train = self._local_step.assign(self._next_token(queue, made, pushed, kept))
        with tf.control_dependencies([update]):
            tokens = tf.fill([self._tokens_per_step], step)
            give = queue.enqueue_many((tokens,))
            if self._variable_averages is not None:
                with tf.control_dependencies([give]):
                    give = self._variable_averages.apply(self._variables_to_average)
        runner = QueueRunner(queue, [give])
        object.__setattr__(self, "_chief_queue_runner", runner)
        return train

    def _next_token(self, queue, made, pushed, kept):
        """The number of the step that a worker computes when it has made that one.

        A step of fewer gradients than there are workers leaves tokens for those that come
        late. Whoever took one of them, as the ops of TensorFlow alone would have it, would
        compute a gradient that is dropped, and now and then a step would take the time of
        two. So where gradients lie on tasks of a cluster, workers wait for the end of their
        step, and pass over tokens of steps that are over. Nobody waits too long: a step has
        a token for each worker, and none takes two. Where a chief that began anew has set
        the step back, the first token is taken. Servers of TensorFlow cannot be asked to
        wait; workers that are threads of one process do as there."""
        alike = self._replicas_to_aggregate >= self._total_num_replicas
        apart = any(tf.DeviceSpec.from_string(device).job for _, device in kept)
        if alike or not apart or _headrace.allows_tensorflow():
            with tf.control_dependencies(pushed):
                return queue.dequeue()
        accumulator, device = kept[0]
        with tf.control_dependencies(pushed), tf.device(device):
            ends = accumulator._await_end(made)
        with tf.control_dependencies([ends]):
            first, now = queue.dequeue(), self._global_step.read_value()
        (token,) = tf.while_loop(
            lambda held: tf.logical_or(
                tf.logical_and(held <= made, made <= now),
                tf.logical_and(held < now, queue.size() > 0),
            ),
            lambda held: (queue.dequeue(),),
            (first,),
            parallel_iterations=1,
        )
        return token

    def _begin_accumulators(self, kept):
        """chief_init_op also tells accumulators which step is the first."""
        begin = [self.chief_init_op]
        for accumulator, device in kept:
            with tf.device(device):
                begin.append(
                    accumulator.set_global_step(self._global_step, name="SetGlobalStep")
                )
        object.__setattr__(self, "chief_init_op", tf.group(*begin))

    def get_chief_queue_runner(self):
        """The QueueRunner that applies gradients: the chief's. ValueError before
        apply_gradients."""
        if not self._gradients_applied:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens=-1):
        """The operation that gives out the first tokens.

        Args:
          num_tokens: how many; -1 is replicas_to_aggregate. At least
            replicas_to_aggregate - total_num_replicas (ValueError else).
        """
        if not self._gradients_applied:
            raise ValueError(
                "get_init_tokens_op() should be called after apply_gradients()."
            )
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs "
                f"{needed} (needed)"
            )
        if num_tokens <= 0:
            return tf.no_op(name="no_init_tokens")
        with tf.device(self._global_step.device), tf.name_scope(""):
            tokens = tf.fill([num_tokens], self._global_step)
            return self._sync_token_queue.enqueue_many((tokens,))

    def num_dropped_gradients(self):
        """How many gradients of single variables came too late for their step and were
        dropped, by all workers together since the chief's servers began: a scalar int64.
        A name of this package's alone, to be called where the graph is made. ValueError
        before apply_gradients."""
        if not self._gradients_applied:
            raise ValueError("Should be called after apply_gradients().")
        counts = []
        for accumulator, device in self._accumulators:
            with tf.device(device):
                counts.append(accumulator.num_dropped())
        return tf.add_n(counts)

    def get_slot(self, *args, **kwargs):
        """A slot of the optimizer inside."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """The names of the slots of the optimizer inside."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self):
        """The variables of the optimizer inside."""
        return self._opt.variables()

    def make_session_run_hook(self, is_chief, num_tokens=-1):
        """The hook that begins local steps, and with the chief gives out the first tokens
        and runs the queue runner; num_tokens as in get_init_tokens_op."""
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)


class _SyncReplicasOptimizerHook(SessionRunHook):
    def __init__(self, sync_optimizer, is_chief, num_tokens):
        self._sync_optimizer = sync_optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens

    def begin(self):
        optimizer = self._sync_optimizer
        if not optimizer._gradients_applied:
            raise ValueError(_TOO_EARLY)
        self._ready_for_local_init_op = optimizer.ready_for_local_init_op
        self._q_runner = self._init_tokens_op = None
        self._local_init_op = optimizer.local_step_init_op
        if self._is_chief:
            self._local_init_op = optimizer.chief_init_op
            self._q_runner = optimizer.get_chief_queue_runner()
            self._init_tokens_op = optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session, coord):
        """Begins the local step; the chief also gives tokens and starts its runner.
        RuntimeError where the model's variables have no values yet."""
        fine, why = ready_in(
            self._ready_for_local_init_op,
            session,
            "Model is not ready for SyncReplicasOptimizer local init.",
        )
        if not fine:
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer "
                f"local_init. Init op: {self._local_init_op.name}, error: {why}"
            )
        session.run(self._local_init_op)
        if self._init_tokens_op is not None:
            session.run(self._init_tokens_op)
        if self._q_runner is not None:
            self._q_runner.create_threads(session, coord=coord, daemon=True, start=True)
