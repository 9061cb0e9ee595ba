"""The manifests of docs/examples/kubernetes have the fields of the API, and no others."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.launchers.examples import EXAMPLES

# Its models come from the schemas of the custom resources and of the pods in them.
models = pytest.importorskip(
    "kubeflow_trainer_api.models", reason="no models of the API: scripts/test.sh launchers"
)
# Of kubeflow.org/v2beta1, for which no package has models.
MPI_JOB = {
    "slotsPerWorker": int,
    "runLauncherAsWorker": bool,
    "runPolicy": dict,
    "sshAuthMountPath": str,
    "launcherCreationPolicy": str,
    "mpiImplementation": str,
    "mpiReplicaSpecs": dict,
}
RUN_POLICY = {"cleanPodPolicy": str, "backoffLimit": int, "ttlSecondsAfterFinished": int}
REPLICAS = {"replicas": int, "restartPolicy": str, "template": dict}


def documents(name: str) -> list[dict[str, Any]]:
    text = (EXAMPLES / "kubernetes" / name).read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


def require_fields(given: dict[str, Any], known: dict[str, type]) -> None:
    for name, value in given.items():
        assert isinstance(value, known[name]), name


def require_equal_once_read(model: str, given: dict[str, Any]) -> None:
    """A field that the API does not know is lost on the way."""
    assert getattr(models, model).from_dict(given).to_dict() == given


def test_train_job_and_its_runtime() -> None:
    runtime, job = documents("trainjob.yaml")
    for document in (runtime, job):
        assert document["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
        require_equal_once_read(f"TrainerV1alpha1{document['kind']}", document)
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]


def test_mpi_job() -> None:
    (job,) = documents("mpijob.yaml")
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    require_fields(job["spec"], MPI_JOB)
    require_fields(job["spec"]["runPolicy"], RUN_POLICY)
    replicas = job["spec"]["mpiReplicaSpecs"]
    assert set(replicas) == {"Launcher", "Worker"}
    for one in replicas.values():
        require_fields(one, REPLICAS)
        require_equal_once_read("IoK8sApiCoreV1PodTemplateSpec", one["template"])
    (launcher,) = replicas["Launcher"]["template"]["spec"]["containers"]
    ranks = replicas["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]
    assert launcher["args"][:2] == ["-np", str(ranks)]
