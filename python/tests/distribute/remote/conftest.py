"""A cluster of two servers and two workers in real processes."""

import pathlib
import sys

import headrace as tf
import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1]))

import processes
import servers


@pytest.fixture(scope="session")
def cluster():
    made = processes.Cluster(ps=2, worker=2).start_all()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def strategy(cluster):
    return servers.strategy_of(cluster)


@pytest.fixture(scope="session")
def coordinator(strategy):
    return tf.distribute.coordinator.ClusterCoordinator(strategy)
