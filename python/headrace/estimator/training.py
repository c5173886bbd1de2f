"""Estimator.train."""

from headrace.context import stack
from headrace.estimator import roles, warm_start
from headrace.estimator.mode_keys import ModeKeys
from headrace.framework.settings import logging
from headrace.v1 import collections, graph_summaries, saver
from headrace.v1.train import basic_hooks, global_step, monitored_session
from headrace.v1.train.saver_hooks import CheckpointSaverHook


def train(estimator, input_fn, hooks, listeners):
    """Trains until the hooks stop it or the input ends; the last loss."""
    devices = roles.devices_of(estimator._config)
    graph = estimator._new_graph(devices)
    with graph.as_default(), graph.device(devices):
        global_step.read_of(graph)
        spec, input_hooks = estimator._spec_and_hooks(input_fn, ModeKeys.TRAIN)
        if estimator._warm_start_settings is not None:
            logging.info(
                "Warm-starting with WarmStartSettings: %s",
                estimator._warm_start_settings,
            )
            warm_start.apply(estimator._warm_start_settings)
        return _run(estimator, spec, input_hooks + hooks, listeners)


def _run(estimator, spec, hooks, listeners):
    graph, config = stack.default_graph(), estimator._config
    _add_loss_summary(graph, spec.loss)
    hooks = [*hooks, basic_hooks.NanTensorHook(spec.loss)]
    if config.log_step_count_steps is not None:
        shown = {"loss": spec.loss, "step": global_step.get_global_step(graph)}
        hooks.append(
            basic_hooks.LoggingTensorHook(
                shown, every_n_iter=config.log_step_count_steps
            )
        )
    hooks += spec.training_hooks
    _add_saver(graph, spec, config)
    chief_hooks = _saving_hooks(estimator, spec, hooks, listeners)
    with monitored_session.MonitoredTrainingSession(
        master=config.master,
        is_chief=config.is_chief,
        checkpoint_dir=estimator.model_dir,
        scaffold=spec.scaffold,
        hooks=hooks,
        chief_only_hooks=[*chief_hooks, *spec.training_chief_hooks],
        save_checkpoint_secs=0,  # a hook does
        save_summaries_steps=config.save_summary_steps,
        config=estimator._session_config,
        max_wait_secs=config.session_creation_timeout_secs,
        log_step_count_steps=config.log_step_count_steps,
        save_graph_def=config.checkpoint_save_graph_def,
    ) as session:
        loss, stepped = None, False
        while not session.should_stop():
            _, loss = session.run([spec.train_op, spec.loss])
            stepped = True
    if not stepped:
        logging.warn(
            "Training with estimator made no steps. Perhaps input is empty or "
            "misspecified."
        )
    return loss


def _add_loss_summary(graph, loss):
    keys = collections.GraphKeys
    if not any(t.op.name == "loss" for t in graph.get_collection(keys.SUMMARIES)):
        graph_summaries.scalar("loss", loss)
    graph.add_to_collection(keys.LOSSES, loss)


def _add_saver(graph, spec, config):
    """A saver of all variables, where the model has none of its own."""
    key = collections.GraphKeys.SAVERS
    if spec.scaffold.saver is not None or graph.get_collection(key):
        return
    graph.add_to_collection(
        key,
        saver.Saver(
            sharded=True,
            max_to_keep=config.keep_checkpoint_max,
            keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
            defer_build=True,
            save_relative_paths=True,
        ),
    )


def _saving_hooks(estimator, spec, hooks, listeners):
    """What saves checkpoints, unless one of the hooks does; it has the listeners."""
    config, made = estimator._config, []
    all_hooks = [*hooks, *spec.training_chief_hooks]
    saving = [h for h in all_hooks if isinstance(h, CheckpointSaverHook)]
    wanted = config.save_checkpoints_secs or config.save_checkpoints_steps
    if wanted and not saving:
        made = saving = [
            CheckpointSaverHook(
                estimator.model_dir,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=spec.scaffold,
                save_graph_def=config.checkpoint_save_graph_def,
            )
        ]
    if listeners and not saving:
        raise ValueError(
            "There should be a CheckpointSaverHook to use saving_listeners. Please set "
            "one of the RunConfig.save_checkpoints_steps or "
            "RunConfig.save_checkpoints_secs."
        )
    if listeners:
        known = saving[0]._listeners
        known.extend(x for x in listeners if x not in known)
    return made
