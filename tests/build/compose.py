"""Holds compose files against what docs/operations.md promises of them: compose.py DRAIN_SECONDS FILE..."""

import sys

import yaml


def faults(name, service, drain_seconds):
    if service.get("read_only") is not True:
        yield "the root is not read-only"
    if service.get("cap_drop") != ["ALL"]:
        yield "capabilities are left"
    if "no-new-privileges:true" not in service.get("security_opt", []):
        yield "new privileges can be had"
    if service.get("restart") != "unless-stopped":
        yield "it is not restarted"
    test = service.get("healthcheck", {}).get("test", [])
    if test[:1] != ["CMD"] or test[-1:] != ["--healthcheck"]:
        yield "the health check is not --healthcheck in exec form"
    grace = str(service.get("stop_grace_period", "0s"))
    if not grace.endswith("s") or int(grace[:-1]) <= drain_seconds:
        yield f"a grace of {grace} is not longer than the drain of {drain_seconds} s"
    for port in service.get("ports", []):
        if not str(port).startswith("127.0.0.1:"):
            yield f"port {port} is published beyond this host"
    if not service.get("environment", {}).get("MATMULD_ALLOWED_HOSTS"):
        yield "any Host is taken: MATMULD_ALLOWED_HOSTS is not set"
    resources = service.get("deploy", {}).get("resources", {})
    devices = resources.get("reservations", {}).get("devices", [])
    has_gpu = any("gpu" in device.get("capabilities", []) for device in devices)
    if has_gpu == name.endswith(".cpu.yaml"):
        yield "a GPU is reserved where there is none, or none where there is one"
    bases = service.get("build", {}).get("args", {})
    if bases.get("BUILD_IMAGE") != bases.get("RUN_IMAGE"):
        yield "the two stages are of different bases"


def main():
    drain_seconds = int(sys.argv[1])
    count = 0
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as file:
            services = yaml.safe_load(file)["services"]
        for service in services.values():
            for fault in faults(name, service, drain_seconds):
                print(f"{name}: {fault}")
                count += 1
    return 1 if count else 0


sys.exit(main())
