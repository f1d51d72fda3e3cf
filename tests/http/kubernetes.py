"""Validates manifests against the schemas of Kubernetes, and prints them as JSON, one a line.

Usage: kubernetes.py FILE.... Kinds of operators have no schema here and are only printed. The pods in KServe's kinds are
validated as pods.
"""

import json
import sys

import kubernetes_validate
import yaml

VERSIONS = ("1.27", kubernetes_validate.latest_version())
# The members of KServe's kinds that a pod does not have
OF_KSERVE = {
    "ServingRuntime": ("supportedModelFormats", "protocolVersions", "multiModel", "annotations"),
    "InferenceService": ("minReplicas", "maxReplicas", "model"),
}


def core(manifest):
    """Returns the manifest, or the pod in it, or None if there is no schema."""
    kind = manifest["kind"]
    if kind not in OF_KSERVE:
        return None if kind in ("Kustomization", "Component", "ScaledObject", "ServiceMonitor") else manifest
    spec = manifest["spec"].get("predictor", manifest["spec"])
    pod = {name: value for name, value in spec.items() if name not in OF_KSERVE[kind]}
    pod.setdefault("containers", [{"name": "kserve-container"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": manifest["metadata"], "spec": pod}


def main():
    faults = 0
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            manifests = list(yaml.safe_load_all(file))
        for manifest in manifests:
            print(json.dumps(manifest))
            checked = core(manifest)
            for version in VERSIONS if checked else ():
                try:
                    kubernetes_validate.validate(checked, version, strict=True)
                except kubernetes_validate.ValidationError as fault:
                    print(f"{name}: {manifest['kind']}: {version}: {fault.message}", file=sys.stderr)
                    faults += 1
    return 1 if faults else 0


sys.exit(main())
