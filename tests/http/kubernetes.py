"""Validates manifests: kubernetes.py NAME.yaml... Writes them as JSON, one a line, to NAME.json.

The schemas are those of Kubernetes, KEDA and the Prometheus Operator. For KServe's kinds there is none, so only the
pods in them are validated.
"""

import json
import pathlib
import sys

import kubernetes_validate
import pydantic
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import ServiceMonitor

VERSIONS = ("1.27", kubernetes_validate.latest_version())
OF_OPERATORS = {"ScaledObject": ScaledObject, "ServiceMonitor": ServiceMonitor}
# The members of KServe's kinds that a pod does not have
OF_KSERVE = {
    "ServingRuntime": ("supportedModelFormats", "protocolVersions", "multiModel", "annotations"),
    "InferenceService": ("minReplicas", "maxReplicas", "model"),
}


def pod(manifest):
    """Returns the pod in one of KServe's manifests."""
    spec = manifest["spec"].get("predictor", manifest["spec"])
    spec = {name: value for name, value in spec.items() if name not in OF_KSERVE[manifest["kind"]]}
    spec.setdefault("containers", [{"name": "kserve-container"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": manifest["metadata"], "spec": spec}


def faults(manifest):
    kind = manifest["kind"]
    if kind in OF_OPERATORS:
        try:
            model = OF_OPERATORS[kind].model_validate(manifest)
        except pydantic.ValidationError as fault:
            yield str(fault)
        else:
            known = model.model_dump(by_alias=True, exclude_unset=True, mode="json")
            if known != manifest:  # the model drops members that it does not know
                yield f"of {manifest} only this is known: {known}"
        return
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(pod(manifest) if kind in OF_KSERVE else manifest, version, strict=True)
        except kubernetes_validate.ValidationError as fault:
            yield f"{version}: {fault.message}"


def main():
    count = 0
    for path in map(pathlib.Path, sys.argv[1:]):
        manifests = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        path.with_suffix(".json").write_text("\n".join(map(json.dumps, manifests)), encoding="utf-8")
        for manifest in manifests:
            for fault in faults(manifest):
                print(f"{path.stem}: {manifest['kind']}: {fault}")
                count += 1
    return 1 if count else 0


sys.exit(main())
